"""Every name, label, annotation, key and path that other programs rely on, once, with its source.

Sources: [operator] mpi-operator v0.2.3, pkg/controllers/v1/mpi_job_controller.go, tested in tests/lab/test_operator_*;
[v0.3.0] the same file at v0.3.0, whose key and format we keep so that a later operator upgrade takes over in place;
[horovod] horovod/runner/elastic/discovery.py; [ours] decided here, part of the public contract.
"""

import re

# --- on the operator's objects [operator] ---
GROUP = "kubeflow.org"
LABEL_GROUP_NAME = "group-name"
LABEL_JOB_NAME = "mpi-job-name"
LABEL_JOB_ROLE = "mpi-job-role"
ROLE_LAUNCHER = "launcher"
ROLE_WORKER = "worker"
# [v0.3.0] numbers its workers.
LABEL_REPLICA_INDEX = "replica-index"
# The main process of a worker whose template names none.
WORKER_COMMAND, WORKER_ARGS = ["sleep"], ["365d"]
# Termination messages of the main process that our webhook gives: it saw the last rank leave, or it saw none at all.
RANKS_LEFT, NO_RANK_SEEN = "ranks have left", "no rank was seen"
# Its first line, by which it is known from a main process of the user's.
MAIN_BEGINS = "trap going=1 TERM"
# Selects the pods of every MPIJob, and nothing else.
POD_SELECTOR = f"{LABEL_GROUP_NAME}={GROUP}"
# On the operator's ConfigMap, Role, RoleBinding and ServiceAccount, with the job's name as value.
LABEL_APP = "app"

CONFIG_VOLUME = "mpi-job-config"
MOUNT_PATH = "/etc/mpi"
KUBECTL_DELIVERY = "kubectl-delivery"
# https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"

KEY_HOSTFILE = "hostfile"
KEY_KUBEXEC = "kubexec.sh"
# [v0.3.0] The key, and the path that users give to horovodrun's --host-discovery-script.
KEY_DISCOVER_HOSTS = "discover_hosts.sh"
DISCOVER_HOSTS_PATH = f"{MOUNT_PATH}/{KEY_DISCOVER_HOSTS}"
MODE_EXECUTABLE = 0o555
SCRIPT_HEADER = "#!/bin/sh\n"

CONDITION_SUCCEEDED = "Succeeded"
CONDITION_FAILED = "Failed"
REASON_JOB_EVICTED = "MPIJobEvicted"

# --- gang schedulers: the first is [operator]'s too ---
# volcano.sh/apis: pkg/apis/scheduling/v1beta1/labels.go, pkg/apis/batch/v1alpha1/labels.go
VOLCANO = "volcano"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
VOLCANO_TASK = "volcano.sh/task-spec"
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
VOLCANO_MARKS = (VOLCANO_GROUP, VOLCANO_TASK, VOLCANO_PREEMPTABLE)
# volcano.sh/volcano: pkg/scheduler/plugins/task-topology/util.go, on a PodGroup
VOLCANO_TOPOLOGY_PREFIX = "volcano.sh/task-topology-"
# sigs.k8s.io/scheduler-plugins: apis/scheduling/v1alpha1/types.go, a label
COSCHEDULING = "coscheduling"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
# koordinator v1.8.0: apis/extension/coscheduling.go and elastic_quota.go, config/manager/scheduler-config.yaml. The
# group is a label of pods, the gang their annotation (later versions read only that), the policy one of a PodGroup.
KOORDINATOR = "koordinator"
KOORDINATOR_SCHEDULER = "koord-scheduler"
KOORDINATOR_GROUP = "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
# Labels: of an MPIJob, written by users, and of its pods; of pods.
KOORDINATOR_QUOTA = "quota.scheduling.koordinator.sh/name"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
# kubernetes v1.36: it knows pods by a field of their spec. The gates that its PodGroups take, and how they are served.
KUBERNETES = "kubernetes"
KUBERNETES_GATES = "the gates GenericWorkload and GangScheduling, and --runtime-config=scheduling.k8s.io/v1alpha2=true"
# [kueue] On an MPIJob, written by users (apis/../constants and pkg/controller/constants).
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
# On an MPIJob, written by MultiKueue in the cluster that it has chosen: an annotation, before Kueue 0.19 a label. And
# its value of spec.managedBy in the cluster where the user created the job.
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# On a Workload: Kueue tells the jobs that it preempts for it.
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"

# --- ours ---
PREFIX = "mpijob-elastic/"
# On an MPIJob, written by users.
ENABLED = f"{PREFIX}enabled"
MIN_REPLICAS = f"{PREFIX}min-replicas"
MAX_REPLICAS = f"{PREFIX}max-replicas"
DRAIN_TIMEOUT = f"{PREFIX}drain-timeout"
REPLACE_FAILED_WORKERS = f"{PREFIX}replace-failed-workers"
SCALE_TIMEOUT = f"{PREFIX}scale-timeout"
# Asks us to act on spec.runPolicy, which the operator ignores (see model/run_policy).
RUN_POLICY = f"{PREFIX}run-policy"
# Holds new pods back, as KUBEQUEUE_SUSPEND does, which KubeQueue's users write
# (https://github.com/kube-queue/kube-queue).
SUSPEND = f"{PREFIX}suspend"
KUBEQUEUE_SUSPEND = "scheduling.x-k8s.io/suspend"
# On an MPIJob, written by users, and on its QueueUnit, where koord-queue reads them: its queue, and its quota in the
# tree (koordinator-sh/koord-queue: pkg/framework/plugins/elasticquota).
KUBEQUEUE_ANNOTATIONS = ("kube-queue/", "koord-queue/")
KUBEQUEUE_QUEUES = ("koord-queue/queue-name", "kube-queue/queue-name")
KUBEQUEUE_LABELS = "quota.scheduling."
# The gang scheduler that takes the job's pods (see model/gang).
GANG = f"{PREFIX}gang"
# The HPA that the controller keeps for the job (see model/autoscale).
AUTOSCALE = f"{PREFIX}autoscale"
# Without effect after 0.2.0: it let workers be deleted although their launcher could not see the host list.
DELETE_UNSEEN = f"{PREFIX}delete-without-discovery"
# On new pods, written by the webhook: a scheduling gate for each reason why a pod must not start yet.
GATE_SUSPENDED = f"{PREFIX}suspended"
GATE_QUEUED = f"{PREFIX}queued"
GATES = frozenset({GATE_SUSPENDED, GATE_QUEUED})
# On an MPIJob, written by the controller.
STATUS = f"{PREFIX}status"
# Starts the line there, and is the Event's reason, after the job was left to another operator.
REASON_HANDED_OVER = "HandedOver"
# The same while the job is suspended, and until its next launcher is there.
REASON_SUSPENDED = "Suspended"
# On a launcher pod, written by the controller: a change makes the kubelet refresh the mounted ConfigMap at once.
REFRESHED = f"{PREFIX}refreshed"
# On the Workloads of Kueue and the HPAs that the controller makes; the value is PROGRAM.
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
# On such an HPA: the digest of the spec that it was given.
SPEC = f"{PREFIX}spec"
# On a QueueUnit of KubeQueue, written by the controller: for how many workers it asks.
WORKERS = f"{PREFIX}workers"
# On a worker pod, written by the webhook and the controller: how far an eviction is (see model/eviction).
EVICTION = f"{PREFIX}eviction"
# On the operator's ConfigMap, written by the controller: state that must survive a restart (see model/memory).
MEMORY = f"{PREFIX}memory"

# The program, its namespace and its objects [ours].
PROGRAM = "mpijob-elastic"
NAMESPACE = "mpijob-elastic"
CONTROLLER = "mpijob-elastic-controller"
WEBHOOK = "mpijob-elastic-webhook"
LEASE = "mpijob-elastic-controller"
CERTIFICATE_SECRET = "mpijob-elastic-webhook-certificates"  # noqa: S105 - an object's name
WEBHOOK_CONFIGURATION = "mpijob-elastic"
# The webhook is not called for a namespace that has this label set to "disabled".
NAMESPACE_OPT_OUT = f"{PREFIX}injection"

PATH_MUTATE = "/mutate"
PATH_VALIDATE = "/validate"
# Followed by a secret, and in the configuration of this hook alone: its answer to a review changes a pod.
PATH_EVICT = "/evict/"
EVICTIONS_HOOK = "evictions.webhook.mpijob-elastic"

# As many digits as an int32 has.
_WORKER = re.compile(r"(?P<job>.+)-worker-(?P<index>0|[1-9][0-9]{0,9})")
# [ours] A pod's name holds `.rN` only before its `-worker-`, so a host name is read back in one way only.
_HOST = re.compile(r"(?P<pod>.+-worker-(?:0|[1-9][0-9]{0,9}))\.r(?P<incarnation>[1-9][0-9]{0,8})")


def config_map(job: str) -> str:
    """Return the name of a job's ConfigMap [operator]."""
    return f"{job}-config"


def adopt(job: str, namespace: str) -> str:
    """Return the command that recreates a job's launcher [ours]; to delete it with a grace period fails the job."""
    return f"{PROGRAM} upgrade adopt {job} -n {namespace}"


def launcher(job: str) -> str:
    """Return the name of a job's launcher pod, Role, RoleBinding and ServiceAccount [operator]."""
    return f"{job}-launcher"


def autoscaler(job: str) -> str:
    """Return the name of the HPA that we make for a job [ours]: a user's own often has the job's name."""
    return f"mpijob-{job}"


def queue_unit(job: str) -> str:
    """Return the name of a job's QueueUnit: as koord-queue's extension for older MPIJobs names it."""
    return f"{job}-mpi-qu"


def worker(job: str, index: int) -> str:
    """Return the name of the worker pod with that index [operator]."""
    return f"{job}-worker-{index}"


def worker_index(pod: str, *, job: str) -> int | None:
    """Return the index in a worker pod's name; None if it is no worker of that job.

    Strict, because job names may hold digits and `-worker-` themselves.
    """
    match = _WORKER.fullmatch(pod)
    return int(match["index"]) if match and match["job"] == job else None


def job_of_worker(pod: str) -> str:
    """Return the job in a worker pod's name; "" if it is none."""
    match = _WORKER.fullmatch(pod)
    return match["job"] if match else ""


def host(pod: str, incarnation: int) -> str:
    """Return a worker's host name in discover_hosts.sh [ours]: the pod's name, later `POD.rN`.

    Horovod never again uses a host name under which a rank died ([horovod] HostManager.blacklist).
    """
    return f"{pod}.r{incarnation}" if incarnation else pod


def pod_of(host: str) -> str:
    """Return the pod of a host name; a name without our suffix is the pod's own."""
    match = _numbered(host)
    return match["pod"] if match else host


def incarnation_of(host: str) -> int:
    """Return the number in a host name, 0 if it is the pod's own name."""
    match = _numbered(host)
    return int(match["incarnation"]) if match else 0


def _numbered(host: str) -> re.Match[str] | None:
    # Nearly all names have no number, and every look asks for all of them.
    return _HOST.fullmatch(host) if ".r" in host else None


def discover_hosts(hosts: list[str], *, slots: int) -> str:
    """Return the script: an `echo NAME:SLOTS` line for each host, in the order given [v0.3.0] [horovod]."""
    return SCRIPT_HEADER + "".join(f"echo {host}:{slots}\n" for host in hosts)


def is_handed_over(notices: str) -> bool:
    """Return True if our annotation on an MPIJob says that we left it to another operator."""
    return _says(notices, REASON_HANDED_OVER)


def is_suspended(notices: str) -> bool:
    """Return True if our annotation on an MPIJob says that it is suspended, or was when its launcher went."""
    return _says(notices, REASON_SUSPENDED)


def _says(notices: str, reason: str) -> bool:
    return any(line.startswith(f"{reason}:") for line in notices.splitlines())


def worker_selector(job: str) -> str:
    """Return the label selector of a job's worker pods, without its launcher [operator]."""
    return f"{POD_SELECTOR},{LABEL_JOB_NAME}={job},{LABEL_JOB_ROLE}={ROLE_WORKER}"


def hostfile(hosts: list[str], *, slots: int) -> str:
    """Return the hostfile: a `NAME slots=N` line for each host [operator]."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)

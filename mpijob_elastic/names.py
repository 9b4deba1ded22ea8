"""Names, labels, annotations, keys and paths of the core that other programs rely on.

Each stands here once, with its source. Names that only an optional capability uses are in its
folder. Sources: [operator] mpi-operator v0.2.3, pkg/controllers/v1/mpi_job_controller.go, tested in
tests/lab/test_operator_*; [v0.3.0] the same file at v0.3.0, whose key and format we keep so that a
later operator upgrade takes over in place; [horovod] horovod/runner/elastic/discovery.py; [ours]
decided here, part of the public contract.
"""

import re
from collections.abc import Mapping

# --- on the operator's objects [operator] ---
GROUP = "kubeflow.org"
LABEL_GROUP_NAME = "group-name"
LABEL_JOB_NAME = "mpi-job-name"
# Characters of a label's value: a job with a longer name gets no pod.
LONGEST_LABEL = 63
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
LONGEST_SUBDOMAIN = 253
_PART_OF_A_NAME = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
# The pattern of such a name.
SUBDOMAIN = rf"{_PART_OF_A_NAME}(?:\.{_PART_OF_A_NAME})*"
_OBJECT_NAME = re.compile(SUBDOMAIN)
LABEL_JOB_ROLE = "mpi-job-role"
ROLE_LAUNCHER = "launcher"
ROLE_WORKER = "worker"
# [v0.3.0] The label by which that operator numbers its workers.
LABEL_REPLICA_INDEX = "replica-index"
# The main process of a worker whose template has no command.
WORKER_COMMAND, WORKER_ARGS = ["sleep"], ["365d"]
# Termination messages of the main process that our webhook gives: it saw the last rank leave, or it
# saw no rank at all.
RANKS_LEFT, NO_RANK_SEEN = "ranks have left", "no rank was seen"
# The first line of that main process, which tells it from a main process of the user.
MAIN_BEGINS = "trap going=1 TERM"
# Selects the pods of every MPIJob, and nothing else.
POD_SELECTOR = f"{LABEL_GROUP_NAME}={GROUP}"
# On the operator's ConfigMap, Role, RoleBinding and ServiceAccount, with the job's name as value.
LABEL_APP = "app"

# Path of the selector of the workers in an MPIJob, for the subresource scale.
SELECTOR_PATH = ("status", "replicaStatuses", "Worker", "selector")

CONFIG_VOLUME = "mpi-job-config"
MOUNT_PATH = "/etc/mpi"
KUBECTL_DELIVERY = "kubectl-delivery"
# https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"

KEY_HOSTFILE = "hostfile"
HOSTFILE_PATH = f"{MOUNT_PATH}/{KEY_HOSTFILE}"
KEY_KUBEXEC = "kubexec.sh"
# [v0.3.0] The key, and the path that users give to horovodrun's --host-discovery-script.
KEY_DISCOVER_HOSTS = "discover_hosts.sh"
DISCOVER_HOSTS_PATH = f"{MOUNT_PATH}/{KEY_DISCOVER_HOSTS}"
# [ours] The driver for any MPI program, and the folder where the driver records on which list ranks
# may run (model/elastic.sh).
KEY_ELASTIC = "elastic.sh"
ELASTIC_PATH = f"{MOUNT_PATH}/{KEY_ELASTIC}"
ELASTIC_VOLUME = "mpijob-elastic"
# The same volume where a template has another one of that name.
ELASTIC_SECOND_VOLUME = "mpijob-elastic-run"
ELASTIC_FOLDER = "/run/mpijob-elastic"
# [ours] The hostfile as hydra reads it, which is the mpirun of MPICH and Intel MPI: lines `NAME:N`.
KEY_HYDRA_HOSTFILE = "hostfile.hydra"
HYDRA_VOLUME = "mpijob-elastic-hydra"
HYDRA_FOLDER = "/etc/mpijob-elastic"
HYDRA_HOSTFILE_PATH = f"{HYDRA_FOLDER}/{KEY_HYDRA_HOSTFILE}"
# The folder of these files with et-operator, https://github.com/AliyunContainerService/et-operator
EDL_PATH = "/etc/edl"
EDL_DISCOVER_HOSTS_PATH = f"{EDL_PATH}/{KEY_DISCOVER_HOSTS}"
# The script of Arena's image, which prints et-operator's list: Arena v0.15.5,
# docs/training/etjob/elastictraining-tensorflow2-mnist.md
ARENA_DISCOVER_HOSTS_PATH = f"/usr/local/bin/{KEY_DISCOVER_HOSTS}"
MODE_EXECUTABLE, MODE_READABLE = 0o555, 0o444
SCRIPT_HEADER = "#!/bin/sh\n"

CONDITION_SUCCEEDED = "Succeeded"
CONDITION_FAILED = "Failed"
REASON_JOB_EVICTED = "MPIJobEvicted"

# --- ours ---
PREFIX = "mpijob-elastic/"
# On an MPIJob, written by users.
ENABLED = f"{PREFIX}enabled"
MIN_REPLICAS = f"{PREFIX}min-replicas"
MAX_REPLICAS = f"{PREFIX}max-replicas"
DRAIN_TIMEOUT = f"{PREFIX}drain-timeout"
REPLACE_FAILED_WORKERS = f"{PREFIX}replace-failed-workers"
MPI_VARIABLES = f"{PREFIX}mpi-variables"
# Without effect after 0.2.0. The annotation let workers be deleted although their launcher could
# not see the host list.
DELETE_UNSEEN = f"{PREFIX}delete-without-discovery"
# On an MPIJob, written by users, and by the webhook when the job is created: what the operator
# drops of pod templates is put back. On a pod, written by the webhook that has done so.
PUT_BACK = f"{PREFIX}put-back"
# On new pods, written by the webhook: a scheduling gate for each reason why a pod must not start
# yet.
GATE_SUSPENDED = f"{PREFIX}suspended"
GATE_QUEUED = f"{PREFIX}queued"
GATE_HELD = f"{PREFIX}held"  # for any other reason
GATES = frozenset({GATE_SUSPENDED, GATE_QUEUED, GATE_HELD})
# A gate that never comes off: such a pod only holds the place of a worker that is not wanted.
GATE_PARKED = f"{PREFIX}parked"
# On an MPIJob, written by users: suspends the job; says what the size 0 means; and the sizes that
# the job may have.
SUSPEND = f"{PREFIX}suspend"
SCALE_TO_ZERO = f"{PREFIX}scale-to-zero"
SIZES = f"{PREFIX}sizes"
# On an MPIJob, written by users, and by the controller if a ScaleIn names pods: the workers that
# the job skips.
PARKED = f"{PREFIX}parked"
# On an MPIJob, written by the controller.
STATUS = f"{PREFIX}status"
# The first word of a line in that annotation, and the reason of the Event, after the job was left
# to another operator.
REASON_HANDED_OVER = "HandedOver"
# The same while the job is suspended, and until its next launcher exists.
REASON_SUSPENDED = "Suspended"
# The same while the launcher is elastic, and the MPIJob is not any more.
REASON_STILL_ELASTIC = "StillElastic"
# On an MPIJob, written by the controller: the job's phase in a word, and the change of size that
# the history does not have yet.
PHASE = f"{PREFIX}phase"
CHANGE = f"{PREFIX}change"
# On an MPIJob, written by the controller with a size that another object asks for: the uid of that
# object.
SCALED_BY = f"{PREFIX}scaled-by"
# On a launcher pod, written by the controller: a change makes the kubelet refresh the mounted
# ConfigMap at once.
REFRESHED = f"{PREFIX}refreshed"
# On objects that the controller makes so that others act on them; the value is PROGRAM.
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
# On the operator's ConfigMap, written by the controller: state that must survive a restart (see
# model/memory).
MEMORY = f"{PREFIX}memory"
# On the same ConfigMap, written by the controller: the last changes of the size (see
# model/history).
HISTORY = f"{PREFIX}history"

# The program, its namespace and its objects [ours].
PROGRAM = "mpijob-elastic"
INSTALL = f"{PROGRAM} install"
INSTALL_AGAIN = f"`{INSTALL}` with the options of the installation"
NAMESPACE = "mpijob-elastic"
# Limits controller and webhook to these namespaces, with spaces between them.
JOBS_NAMESPACE_VARIABLE = "MPIJOB_ELASTIC_JOBS_NAMESPACE"
CONTROLLER = "mpijob-elastic-controller"
CONTROLLER_USER = f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
WEBHOOK = "mpijob-elastic-webhook"
LEASE = "mpijob-elastic-controller"
CERTIFICATE_SECRET = "mpijob-elastic-webhook-certificates"  # noqa: S105 - an object's name
WEBHOOK_CONFIGURATION = "mpijob-elastic"
# The webhook is not called for a namespace that has this label set to "disabled".
NAMESPACE_OPT_OUT = f"{PREFIX}injection"
# The same for the one hook that gives new jobs a queue.
NO_DEFAULT_QUEUE = f"{PREFIX}default-queue"
# Namespaces whose jobs are never managed, beside the one of the installation.
NOT_FOR_JOBS = frozenset({"kube-system", "kube-public", "kube-node-lease", NAMESPACE})

PATH_MUTATE = "/mutate"
PATH_VALIDATE = "/validate"
# Its hook has namespaces of its own.
PATH_DEFAULT_QUEUE = "/default-queue"
# A secret follows this path, and only the configuration of this hook has it, because the answer to
# a review there changes a pod.
PATH_EVICT = "/evict/"
EVICTIONS_HOOK = "evictions.webhook.mpijob-elastic"

# As many digits as an int32 has.
_WORKER = re.compile(r"(?P<job>.+)-worker-(?P<index>0|[1-9][0-9]{0,9})")
# [ours] The name of a pod may hold `.rN` only before its `-worker-`, so there is only one way to
# read a host name back.
_HOST = re.compile(r"(?P<pod>.+-worker-(?:0|[1-9][0-9]{0,9}))\.r(?P<incarnation>[1-9][0-9]{0,8})")

_REMINDER = re.compile(r".+-worker-(?:0|[1-9][0-9]{0,9})\.r0(?P<number>[1-9])")


def config_map(job: str) -> str:
    """Return the name of a job's ConfigMap [operator]."""
    return f"{job}-config"


def adopt(job: str, namespace: str) -> str:
    """Return the command that recreates a job's launcher [ours].

    Deleting the launcher with a grace period would fail the job.
    """
    return f"{PROGRAM} upgrade adopt {job} -n {namespace}"


def launcher(job: str) -> str:
    """Return the name of a job's launcher pod, Role, RoleBinding and ServiceAccount [operator]."""
    return f"{job}-launcher"


def worker(job: str, index: int) -> str:
    """Return the name of the worker pod with that index [operator]."""
    return f"{job}-worker-{index}"


def worker_index(pod: str, *, job: str) -> int | None:
    """Return the index in a worker pod's name; None if the pod is no worker of that job.

    The check is strict, because job names may hold digits and `-worker-` themselves.
    """
    match = _WORKER.fullmatch(pod)
    return int(match["index"]) if match and match["job"] == job else None


def job_of_worker(pod: str) -> str:
    """Return the job in a worker pod's name; "" if the pod is no worker."""
    match = _WORKER.fullmatch(pod)
    return match["job"] if match else ""


def host(pod: str, incarnation: int) -> str:
    """Return a worker's host name in discover_hosts.sh [ours]: the pod's name, later `POD.rN`.

    Horovod never again uses a host name under which a rank died ([horovod] HostManager.blacklist).
    """
    return f"{pod}.r{incarnation}" if incarnation else pod


def pod_of(host: str) -> str:
    """Return the pod of a host name; a name without our suffix is the pod's own name."""
    match = _numbered(host)
    return match["pod"] if match else host


def incarnation_of(host: str) -> int:
    """Return the number in a host name; 0 for the pod's own name."""
    match = _numbered(host)
    return int(match["incarnation"]) if match else 0


def _numbered(host: str) -> re.Match[str] | None:
    # Nearly all names have no number, and every look asks for all of them.
    return _HOST.fullmatch(host) if ".r" in host else None


def reminder(pod: str, number: int) -> str:
    """Return the name in a line without slots (decide/reminders) [ours]: `POD.r01` to `POD.r09`.

    No worker gets such a host name, because the number of a host name begins with another digit.
    """
    return f"{pod}.r0{number}"


def reminder_number(name: str) -> int:
    """Return the number in a reminder's name; 0 if it is no reminder's name."""
    match = _REMINDER.fullmatch(name)
    return int(match["number"]) if match else 0


def discover_hosts(hosts: list[str], *, slots: int, reminder: str = "") -> str:
    """Return discover_hosts.sh: an `echo NAME:SLOTS` line for each host, in this order.

    A line without slots follows if there is a reminder. [v0.3.0] [horovod]
    """
    lines = [f"echo {host}:{slots}\n" for host in hosts]
    if reminder:
        lines.append(f"echo {reminder}:0\n")
    return SCRIPT_HEADER + "".join(lines)


def numbered_hosts(pods: Mapping[str, str], *, slots: int, number: int, drain: int) -> str:
    """Return discover_hosts.sh for elastic.sh: it prints the same, and comments say more.

    pods: the fingerprint of each host's pod, by the host name, in this order. number: of the list.
    drain: the drain-timeout, in seconds. [ours]
    """
    header = f"# list {number} drain {drain}\n"
    lines = [f"echo {host}:{slots} # {pod}\n" for host, pod in pods.items()]
    return SCRIPT_HEADER + header + "".join(lines)


def is_handed_over(notices: str) -> bool:
    """Return True if our annotation on an MPIJob says that we left the job to another operator."""
    return _says(notices, REASON_HANDED_OVER)


def is_suspended(notices: str) -> bool:
    """Return True if our annotation on an MPIJob says that the job is suspended.

    The annotation says so until the job's next launcher exists.
    """
    return _says(notices, REASON_SUSPENDED)


def is_still_elastic(notices: str) -> bool:
    """Return True if our annotation on an MPIJob says that its launcher is elastic all the same.

    The webhook reads it: from the MPIJob alone it would take the job for a plain one.
    """
    return _says(notices, REASON_STILL_ELASTIC)


def _says(notices: str, reason: str) -> bool:
    return any(line.startswith(f"{reason}:") for line in notices.splitlines())


def gets_no_pod(job: str) -> bool:
    """Tell whether a job's name is too long for the label that its pods carry [operator].

    The API server refuses each pod of such a job, and every selector with that label.
    """
    return len(job) > LONGEST_LABEL


def is_object_name(text: str) -> bool:
    """Tell whether the API server takes a text as the name of an MPIJob (RFC 1123, a subdomain)."""
    return len(text) <= LONGEST_SUBDOMAIN and _OBJECT_NAME.fullmatch(text) is not None


def pod_selector(job: str) -> str:
    """Return the label selector of a job's pods, or of all jobs' pods if the job gets none."""
    return POD_SELECTOR if gets_no_pod(job) else f"{POD_SELECTOR},{LABEL_JOB_NAME}={job}"


def worker_selector(job: str) -> str:
    """Return the label selector of a job's worker pods, without its launcher [operator]."""
    return f"{POD_SELECTOR},{LABEL_JOB_NAME}={job},{LABEL_JOB_ROLE}={ROLE_WORKER}"


def hostfile(hosts: list[str], *, slots: int) -> str:
    """Return the hostfile: a `NAME slots=N` line for each host [operator]."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)

"""Every name, label, annotation, key and path that must agree with somebody else, once, with its source.

Sources: [operator] mpi-operator v0.2.3, pkg/controllers/v1/mpi_job_controller.go, tested in tests/lab/test_operator_*;
[v0.3.0] the same file at v0.3.0, whose key and format we keep so that a later operator upgrade takes over in place;
[horovod] horovod/runner/elastic/discovery.py; [ours] decided here, part of the public contract.
"""

from __future__ import annotations

import re

# --- what the operator puts on its objects [operator] ---
GROUP = "kubeflow.org"
LABEL_GROUP_NAME = "group-name"
LABEL_JOB_NAME = "mpi-job-name"
LABEL_JOB_ROLE = "mpi-job-role"
ROLE_LAUNCHER = "launcher"
ROLE_WORKER = "worker"
# Every pod of every MPIJob, and nothing else, carries it.
POD_SELECTOR = f"{LABEL_GROUP_NAME}={GROUP}"
# The operator's ConfigMap, Role, RoleBinding and ServiceAccount carry it, with the job's name as value.
LABEL_APP = "app"

CONFIG_VOLUME = "mpi-job-config"
MOUNT_PATH = "/etc/mpi"
KUBECTL_DELIVERY = "kubectl-delivery"
MAIN_CONTAINER_FIELD = "mainContainer"

KEY_HOSTFILE = "hostfile"
KEY_KUBEXEC = "kubexec.sh"
# [v0.3.0] the key and the path users give to horovodrun's --host-discovery-script.
KEY_DISCOVER_HOSTS = "discover_hosts.sh"
DISCOVER_HOSTS_PATH = f"{MOUNT_PATH}/{KEY_DISCOVER_HOSTS}"
MODE_EXECUTABLE = 0o555
SCRIPT_HEADER = "#!/bin/sh\n"

CONDITION_SUCCEEDED = "Succeeded"
CONDITION_FAILED = "Failed"
REASON_EVICTED = "Evicted"
REASON_JOB_EVICTED = "MPIJobEvicted"

# --- ours ---
PREFIX = "mpijob-elastic/"
# On a MPIJob, written by users.
ENABLED = f"{PREFIX}enabled"
MIN_REPLICAS = f"{PREFIX}min-replicas"
MAX_REPLICAS = f"{PREFIX}max-replicas"
DRAIN_TIMEOUT = f"{PREFIX}drain-timeout"
REPLACE_FAILED_WORKERS = f"{PREFIX}replace-failed-workers"
SCALE_TIMEOUT = f"{PREFIX}scale-timeout"
# On a MPIJob, written by users: lets us delete from a running job whose launcher cannot see the host list.
DELETE_UNSEEN = f"{PREFIX}delete-without-discovery"
USER_ANNOTATIONS = frozenset(
    {ENABLED, MIN_REPLICAS, MAX_REPLICAS, DRAIN_TIMEOUT, REPLACE_FAILED_WORKERS, SCALE_TIMEOUT, DELETE_UNSEEN}
)
# On a MPIJob, written by the controller.
STATUS = f"{PREFIX}status"
# Its line there, and its Event's reason, where another operator looks after the job by now.
REASON_HANDED_OVER = "HandedOver"
# On a launcher pod, written by the controller: any change makes the kubelet refresh the mounted ConfigMap at once.
REFRESHED = f"{PREFIX}refreshed"
# On the operator's ConfigMap, written by the controller: what must survive a restart (see decide/memory).
MEMORY = f"{PREFIX}memory"

# The program, its namespace and its objects [ours].
PROGRAM = "mpijob-elastic"
NAMESPACE = "mpijob-elastic"
CONTROLLER = "mpijob-elastic-controller"
WEBHOOK = "mpijob-elastic-webhook"
LEASE = "mpijob-elastic-controller"
CERTIFICATE_SECRET = "mpijob-elastic-webhook-certificates"  # noqa: S105 - an object's name
WEBHOOK_CONFIGURATION = "mpijob-elastic"
# A namespace with this label set to "disabled" is not asked about at the webhook.
NAMESPACE_OPT_OUT = f"{PREFIX}injection"

PATH_MUTATE = "/mutate"
PATH_VALIDATE = "/validate"

# As many digits as an int32 has.
_WORKER = re.compile(r"(?P<job>.+)-worker-(?P<index>0|[1-9][0-9]{0,9})")
# [ours] A pod's name holds `.rN` only before its `-worker-`, so a host name is read back in one way only.
_HOST = re.compile(r"(?P<pod>.+-worker-(?:0|[1-9][0-9]{0,9}))\.r(?P<incarnation>[1-9][0-9]{0,8})")


def config_map(job: str) -> str:
    """Name of the operator's ConfigMap of a job [operator]."""
    return f"{job}-config"


def launcher(job: str) -> str:
    """Name of the launcher pod, and of the Role, RoleBinding and ServiceAccount beside it [operator]."""
    return f"{job}-launcher"


def worker(job: str, index: int) -> str:
    """Name of the worker pod with that index [operator]."""
    return f"{job}-worker-{index}"


def worker_index(pod: str, *, job: str) -> int | None:
    """The index in a worker pod's name, or None where it is not a worker name of that job.

    Strict, because job names may hold digits and `-worker-` themselves.
    """
    match = _WORKER.fullmatch(pod)
    return int(match["index"]) if match and match["job"] == job else None


def host(pod: str, incarnation: int) -> str:
    """The name under which discover_hosts.sh names a worker [ours]: the pod's, or `POD.rN` from the second one on.

    Horovod never again uses a host name under which a rank died ([horovod] HostManager.blacklist).
    """
    return f"{pod}.r{incarnation}" if incarnation else pod


def pod_of(host: str) -> str:
    """The pod that a host name stands for; any name that is not of our form stands for itself."""
    match = _numbered(host)
    return match["pod"] if match else host


def incarnation_of(host: str) -> int:
    """The number in a host name, 0 where it is the pod's own name."""
    match = _numbered(host)
    return int(match["incarnation"]) if match else 0


def _numbered(host: str) -> re.Match[str] | None:
    # Nearly all names have no number, and every look asks for all of them.
    return _HOST.fullmatch(host) if ".r" in host else None


def discover_hosts(hosts: list[str], *, slots: int) -> str:
    """The script: one `echo NAME:SLOTS` a line, nothing else [v0.3.0], [horovod]; `hosts` in the order given."""
    return SCRIPT_HEADER + "".join(f"echo {host}:{slots}\n" for host in hosts)


def is_handed_over(notices: str) -> bool:
    """Whether our annotation on a MPIJob says that we gave way to somebody else."""
    return any(line.startswith(f"{REASON_HANDED_OVER}:") for line in notices.splitlines())


def worker_selector(job: str) -> str:
    """Label selector of a job's worker pods, and never of its launcher, by the labels of [operator]."""
    return f"{POD_SELECTOR},{LABEL_JOB_NAME}={job},{LABEL_JOB_ROLE}={ROLE_WORKER}"


def hostfile(hosts: list[str], *, slots: int) -> str:
    """The hostfile as the operator writes it: `NAME slots=N` a line [operator]."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)

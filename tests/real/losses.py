"""Ways in which workers lose their ranks, and in which somebody else deletes a worker, whose rank leaves in time."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.training.job import TrainingJob
from tests.real.nodes import FIRST, SECOND, lose
from tests.real.pods import until

LABEL = "victim"
TAINT = "maintenance"
POLL = 0.02  # seconds


class Way(Enum):
    """A way in which a worker is deleted."""

    DELETE = "`kubectl delete pod`"
    DRAIN = "`kubectl drain`"
    TAINT = "taint NoExecute"
    PREEMPTION = "preemption"


@dataclass(frozen=True, kw_only=True)
class Going:
    """When a deletion was asked for, when the rank had left, and when the pod was gone."""

    since: float
    rank_left: float
    pod_gone: float


def go(job: TrainingJob, way: Way, pod: str) -> Going:
    """Have a worker deleted, and watch its rank and pod go.

    The node is as before when its pod is gone.
    """
    ranks = _ranks(pod)
    assert ranks
    with ThreadPoolExecutor() as pool:
        gone = pool.submit(_gone_at, job, pod)
        time.sleep(1)  # until it watches
        since, rank_left = time.time(), 0.0
        with _deleting(job, way, pod):
            while not gone.done():
                rank_left = rank_left or (0.0 if any(map(_runs, ranks)) else time.time())
                time.sleep(POLL)
        pod_gone = gone.result()
    return Going(since=since, rank_left=rank_left or pod_gone, pod_gone=pod_gone)


def _gone_at(job: TrainingJob, pod: str) -> float:
    """Wait until a pod is gone, and return when; `kubectl wait` says so up to a second later."""
    watch = (
        "get",
        "pod",
        pod,
        "--watch",
        "--output-watch-events",
        "--no-headers",
        "--request-timeout=180s",
    )
    with subprocess.Popen(_kubectl(job, *watch), stdout=subprocess.PIPE, text=True) as events:
        assert events.stdout
        at = next((time.time() for event in events.stdout if event.startswith("DELETED")), None)
        events.terminate()
    assert at is not None
    return at


def _ranks(pod: str) -> list[Path]:
    """Return the ranks' processes, as the machine sees them."""
    return [
        process
        for process in Path("/proc").glob("[0-9]*")
        if _runs(process) and _is_in(process, pod)
    ]


def _is_in(process: Path, pod: str) -> bool:
    try:
        return f"HOROVOD_HOSTNAME={pod}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _runs(process: Path) -> bool:
    try:
        return (process / "comm").read_text() == "python3\n" and ") Z " not in (
            process / "stat"
        ).read_text()
    except OSError:
        return False


@contextmanager
def _deleting(job: TrainingJob, way: Way, pod: str) -> Iterator[None]:
    cluster, chosen = job.cluster, f"{LABEL}={job.namespace}"
    cluster.kubectl("-n", job.namespace, "label", "pod", pod, chosen)
    match way:
        case Way.DELETE:
            cluster.kubectl("-n", job.namespace, "delete", "pod", pod, "--wait=false")
            yield
        case Way.DRAIN:
            drain = subprocess.Popen(
                _kubectl(job, "drain", FIRST, "--pod-selector", chosen), stdout=subprocess.DEVNULL
            )
            yield
            assert drain.wait(60) == 0
            cluster.kubectl("uncordon", FIRST)
        case Way.TAINT:
            taint = f"{TAINT}={time.time_ns()}:NoExecute"
            _tolerate(job, taint, sorted(set(job.pods()) - {pod}))
            cluster.kubectl("taint", "node", FIRST, taint)
            yield
            cluster.kubectl("taint", "node", FIRST, f"{taint}-")
        case Way.PREEMPTION:
            cluster.kubectl("create", "-f", "-", stdin=json.dumps(_rival(job.namespace)))
            yield
            cluster.kubectl(
                "-n", job.namespace, "delete", "pod", "rival", "--force", "--grace-period=0"
            )


def _tolerate(job: TrainingJob, taint: str, pods: list[str]) -> None:
    """Have pods stay in spite of a taint, as those of another team do."""
    value = taint.removeprefix(f"{TAINT}=").removesuffix(":NoExecute")
    toleration = {"key": TAINT, "operator": "Equal", "value": value, "effect": "NoExecute"}
    patch = json.dumps([{"op": "add", "path": "/spec/tolerations/-", "value": toleration}])
    for pod in pods:
        job.cluster.kubectl("-n", job.namespace, "patch", "pod", pod, "--type=json", "-p", patch)


def _rival(namespace: str) -> dict[str, object]:
    """A pod of a higher priority that cannot be where the chosen worker is: the scheduler ends that one for it."""
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {LABEL: namespace}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "rival", "namespace": namespace},
        "spec": {
            "priorityClassName": "system-cluster-critical",
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
            },
            "containers": [
                {
                    "name": "it",
                    "image": "horovod-elastic-pytorch:0.28.1",
                    "command": ["sleep", "365d"],
                }
            ],
        },
    }


def _kubectl(job: TrainingJob, *arguments: str) -> list[str]:
    cluster: Cluster = job.cluster
    return [
        str(cluster.binaries.kubectl),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "-n",
        job.namespace,
        *arguments,
    ]


# The rank is Python; the pod's own main process is `sleep`. Fails where there is none.
_KILL_RANK = """
killed=
for process in /proc/[0-9]*; do
  read -r name < $process/comm || continue
  if [ "$name" = python3 ]; then kill -9 ${process#/proc/}; killed=yes; fi
done 2> /dev/null
[ $killed ]
"""


def _kill(cluster: Cluster, namespace: str, pod: str) -> None:
    cluster.kubectl("exec", pod, "--namespace", namespace, "--", "/bin/sh", "-c", _KILL_RANK)


def _evict(cluster: Cluster, namespace: str, pod: str) -> None:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"

    def accepted() -> bool | None:
        try:
            cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
        except LabError as error:  # while the worker drains; kubectl drain tries again as well
            if "TooManyRequests" not in str(error):
                raise
            return None
        return True

    until(f"{pod} may be evicted", accepted)


def _delete(cluster: Cluster, namespace: str, pod: str) -> None:
    cluster.kubectl(
        "delete",
        "pod",
        pod,
        "--namespace",
        namespace,
        "--force",
        "--grace-period=0",
        "--wait=false",
    )


def _lose_node(cluster: Cluster, namespace: str, pod: str) -> None:
    node = cluster.kubectl(
        "get", "pod", pod, "--namespace", namespace, "-o", "jsonpath={.spec.nodeName}"
    )
    assert node == SECOND, "the launcher and the other workers are to stay"
    lose(cluster, SECOND)


class Loss(Enum):
    """A way in which a worker loses its rank.

    Evicted or deleted, its rank may still leave in time; the others are cut.

    A lost node takes the worker that was evicted three losses before, for that one went to the
    second node.
    """

    EVICTED = "pod evicted"
    DELETED = "pod deleted by force"
    KILLED = "rank killed"
    NODE_LOST = "node lost"

    @property
    def replaced_on(self) -> str:
        """Where its replacement is to run."""
        return SECOND if self is Loss.EVICTED else FIRST

    @property
    def inflict(self) -> Callable[[Cluster, str, str], None]:
        """Does it, in a lab, to the pod of a namespace."""
        return {
            Loss.NODE_LOST: _lose_node,
            Loss.EVICTED: _evict,
            Loss.DELETED: _delete,
            Loss.KILLED: _kill,
        }[self]

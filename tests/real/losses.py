"""How a job loses ranks, and how it got over it.

The lab has one real node, so a lost one is stood in for by what follows from it: the pod is deleted by force, as the
garbage collector of pods or an administrator does then. What this cannot show is a connection that hangs until TCP
gives it up: the node's kubelet lives and ends the containers.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lab.cluster import Cluster
from lab.training.log import Log, first_with

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
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


def _delete(cluster: Cluster, namespace: str, pod: str) -> None:
    cluster.kubectl("delete", "pod", pod, "--namespace", namespace, "--force", "--grace-period=0", "--wait=false")


class Loss(Enum):
    """What happens to a worker."""

    NODE_LOST = "node lost"
    EVICTED = "evicted"
    KILLED = "rank killed"

    @property
    def inflict(self) -> Callable[[Cluster, str, str], None]:
        """Does it, in a lab, to the pod of a namespace."""
        return {Loss.NODE_LOST: _delete, Loss.EVICTED: _evict, Loss.KILLED: _kill}[self]


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Seconds from the loss to the first step without the lost rank, and to the first step of all ranks."""

    went_on: float
    full: float


def recovery(log: Log, host: str, *, size: int, since: float) -> Recovery | None:
    """How training of so many ranks got over losing that of `host`; None while it has not."""
    back = next((one.time for one in log.starts if one.host == host and one.time >= since), None)
    full = first_with(log.steps, size=size, since=back) if back else None
    if back is None or full is None:
        return None
    # The last steps of all ranks may have been told after `since`.
    without = (one.time for one in log.steps if one.time >= since and (one.size < size or one.time >= back))
    return Recovery(went_on=next(without) - since, full=full.time - since)

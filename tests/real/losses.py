"""How workers lose their ranks.

The lab has one real node, so a lost one is stood in for by what follows from it: the rank is dead, and the pod is
deleted by force, as the garbage collector of pods or an administrator does then. What this cannot show is a connection
that hangs until TCP gives it up.
"""

import json
from collections.abc import Callable
from enum import Enum

from lab.cluster import Cluster

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


def _kill_and_delete(cluster: Cluster, namespace: str, pod: str) -> None:
    _kill(cluster, namespace, pod)
    _delete(cluster, namespace, pod)


class Loss(Enum):
    """What happens to a worker. Evicted or deleted, its rank may still leave in time; the others are cut."""

    NODE_LOST = "node lost"
    EVICTED = "pod evicted"
    DELETED = "pod deleted by force"
    KILLED = "rank killed"

    @property
    def inflict(self) -> Callable[[Cluster, str, str], None]:
        """Does it, in a lab, to the pod of a namespace."""
        return {
            Loss.NODE_LOST: _kill_and_delete,
            Loss.EVICTED: _evict,
            Loss.DELETED: _delete,
            Loss.KILLED: _kill,
        }[self]

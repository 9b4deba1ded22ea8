"""Ways in which workers lose their ranks."""

import json
from collections.abc import Callable
from enum import Enum

from lab.cluster import Cluster
from lab.errors import LabError
from tests.real.nodes import FIRST, SECOND, lose
from tests.real.pods import until

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
    cluster.kubectl("delete", "pod", pod, "--namespace", namespace, "--force", "--grace-period=0", "--wait=false")


def _lose_node(cluster: Cluster, namespace: str, pod: str) -> None:
    node = cluster.kubectl("get", "pod", pod, "--namespace", namespace, "-o", "jsonpath={.spec.nodeName}")
    assert node == SECOND, "the launcher and the other workers are to stay"
    lose(cluster, SECOND)


class Loss(Enum):
    """A way in which a worker loses its rank. Evicted or deleted, its rank may still leave in time; the others are cut.

    A lost node takes the worker that was evicted three losses before, for that one went to the second node.
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

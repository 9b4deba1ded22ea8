"""The lab's two real nodes, or with LAB_KIND kind's: where pods are scheduled, and the loss of one."""

import os

from lab.cluster import Cluster
from lab.kind import workers
from lab.node.addresses import places

NAME = f"real-{os.getpid()}"
KIND = bool(os.environ.get("LAB_KIND"))
# Names of Nodes.
FIRST, SECOND = workers(NAME, 2) if KIND else (place.name for place in places(2))


def schedule_on(cluster: Cluster, node: str) -> None:
    """Have new pods scheduled on one of them only."""
    for one in (FIRST, SECOND):
        cluster.kubectl("uncordon" if one == node else "cordon", one)


def lose(cluster: Cluster, node: str) -> None:
    """Its power fails, and the keeper of nodes, in a cloud a controller, says that it is gone.

    Its pods are deleted a minute later, by the garbage collector of kube-controller-manager
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection).
    """
    cluster.kill_node(node)
    cluster.kubectl("delete", "node", node)

"""The lab's two real nodes: where pods are scheduled, and the loss of one."""

from lab.cluster import Cluster
from lab.node.places import Place, places

FIRST, SECOND = places(2)


def schedule_on(cluster: Cluster, node: Place) -> None:
    """Have new pods scheduled on one of them only."""
    for one in (FIRST, SECOND):
        cluster.kubectl("uncordon" if one == node else "cordon", one.name)


def lose(cluster: Cluster, node: Place) -> None:
    """Its power fails, and whoever looks after nodes, in a cloud a controller, says that it is gone.

    Its pods are deleted a minute later, by the garbage collector of kube-controller-manager
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection).
    """
    cluster.kill_node(node.name)
    cluster.kubectl("delete", "node", node.name)

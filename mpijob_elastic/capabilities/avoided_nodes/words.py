"""The notice that names the avoided nodes: the controller writes it, and the webhook reads it.

The webhook sees the MPIJob and not the ConfigMap. This notice is on the MPIJob anyway, so it takes
no further write, and no further right.
"""

from collections.abc import Sequence

from mpijob_elastic import names
from mpijob_elastic.capabilities.avoided_nodes import losses
from mpijob_elastic.decide.actions import Note

REASON = "NodesAvoided"
# Between two names, and after the last.
_NEXT, _END = ", ", ": "


def note(job: str, nodes: Sequence[str]) -> Note:
    """Return the notice that names these nodes first."""
    words = (
        f"{losses.ENOUGH} or more workers of {job} were lost there, so new workers prefer other "
        "nodes until a day has passed without a loss"
    )
    return Note(
        reason=REASON,
        message=f"{_NEXT.join(nodes)}{_END}{words}",
        next_step=f"kubectl describe node {' '.join(nodes)}",
        shapes_pods=True,
    )


def nodes_in(notices: str) -> tuple[str, ...]:
    """Return the nodes that the notices of an MPIJob name; () if none is avoided.

    Anybody who may edit the MPIJob may write any name there, and the API server refuses a pod with
    a name that no node can have.
    """
    for line in notices.splitlines():
        reason, _, rest = line.partition(_END)
        nodes, is_whole, _ = rest.partition(_END)
        # A long notice is cut, perhaps within a name.
        if reason == REASON and is_whole:
            found = nodes.split(_NEXT)[: losses.MOST]
            return tuple(filter(names.is_object_name, found))
    return ()

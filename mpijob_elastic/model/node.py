"""A node as the API server sends it, as far as signs of its end may be read of it.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/
"""

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.json_parts import Wire
from mpijob_elastic.model.pod import Taint


class NodeCondition(Wire, frozen=True):
    """One of `status.conditions`."""

    type: str = ""
    #: "True", "False" or "Unknown".
    status: str = ""
    message: str = ""
    #: When the status last changed (RFC 3339).
    last_transition_time: str | None = None


class NodeSpec(Wire, frozen=True):
    """`spec`."""

    taints: list[Taint] | None = None
    #: The node is cordoned.
    unschedulable: bool | None = None


class NodeStatus(Wire, frozen=True):
    """`status`."""

    conditions: list[NodeCondition] | None = None


class Node(Wire, frozen=True):
    """A node; nothing of it is kept but the signs that it has."""

    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NodeSign(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A sign that a node is about to go."""

    #: The sign, in words.
    words: str
    #: From when it counts (seconds since the epoch); 0 if it counts at once.
    begins_at: float = 0.0
    #: Pods may leave one after another, because the node does not go at a set time.
    can_wait: bool = False


class Signs:
    """The signs that a node is about to go; by default there are none."""

    def of(self, _node: Node) -> tuple[NodeSign, ...]:
        """Return the signs on a node that count whatever a pod tolerates."""
        return ()

    def evicts(self, _key: str, _effect: str) -> bool:
        """Return True if that taint makes the pods leave that do not tolerate it."""
        return False

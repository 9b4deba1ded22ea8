"""Taints of nodes, and which pods stay in spite of them.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

import re

import msgspec

from mpijob_elastic.model.wire import Wire

NO_EXECUTE = "NoExecute"
# https://kubernetes.io/docs/reference/labels-annotations-taints/: set by Kubernetes itself and by cloud providers.
_BUILT_IN = re.compile(r"node(?:\.cloudprovider)?\.kubernetes\.io/.*")


class Taint(Wire, frozen=True, gc=False):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Wire, frozen=True, gc=False):
    """A toleration of a pod. effect: "" means any; seconds: None means for ever."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = msgspec.field(default=None, name="tolerationSeconds")

    @property
    def may_last(self) -> bool:
        """True if a pod may stay for ever, and not only while Kubernetes reports its node as lost."""
        return self.seconds is None and self.effect in ("", NO_EXECUTE) and not is_built_in(self.key)

    def lasts_against(self, taint: Taint) -> bool:
        """Return True if a pod with this toleration stays in spite of the taint."""
        everything = not self.key and self.operator == "Exists"
        named = self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)
        return self.may_last and (everything or named)


def is_built_in(key: str) -> bool:
    """Return True if Kubernetes itself reports a node's state with that taint."""
    return _BUILT_IN.fullmatch(key) is not None

"""Taints of nodes, which pods stay in spite of them, and what else tells that a node is about to go.

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


class Signs:
    """By what is told that a node is about to go; by default by nothing."""

    def names_taint(self, _key: str, _value: str, _effect: str) -> bool:
        """Return True if that taint means the node's end, whatever a pod tolerates."""
        return False

    def names_condition(self, _kind: str) -> bool:
        """Return True if a condition of that type does."""
        return False

    def evicts(self, _key: str, _effect: str) -> bool:
        """Return True if that taint makes pods leave that do not tolerate it."""
        return False

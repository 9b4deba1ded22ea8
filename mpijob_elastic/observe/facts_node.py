"""The facts of a node: its name, and the signs that it is about to go.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.disruption_signs import NO_EXECUTE, Signs, is_built_in
from mpijob_elastic.model.wire import Owned, Wire, owned


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


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""


class _Spec(Wire, frozen=True):
    taints: list[Taint] | None = None


class _Status(Wire, frozen=True):
    conditions: list[_Condition] | None = None


class _Node(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node. named: the first sign of its end, in words; evicting: taints that make some pods leave."""

    metadata: Owned
    named: str = ""
    evicting: tuple[Taint, ...] = ()

    @property
    def signs(self) -> tuple[str, tuple[Taint, ...]]:
        """All signs, for comparison."""
        return self.named, self.evicting

    def threat(self, tolerations: Iterable[Toleration]) -> str:
        """Return why a pod with these tolerations is about to go, "" if it stays."""
        if self.named:
            return self.named
        lasting = list(tolerations)
        for taint in self.evicting:
            if not any(toleration.lasts_against(taint) for toleration in lasting):
                return f"taint {taint.key}:{taint.effect}"
        return ""


_decoder = msgspec.json.Decoder(_Node)


def reading(signs: Signs) -> Callable[[bytes], NodeFacts]:
    """Return a reader of a node's JSON by these signs; it raises msgspec.DecodeError if that is no node."""

    def read(raw: bytes) -> NodeFacts:
        node = _decoder.decode(raw)
        taints = (node.spec.taints if node.spec else None) or []
        return NodeFacts(
            metadata=owned(node.metadata),
            named=next(_named(node, signs), ""),
            evicting=tuple(taint for taint in taints if signs.evicts(taint.key, taint.effect)),
        )

    return read


def _named(node: _Node, signs: Signs) -> Iterator[str]:
    for taint in (node.spec.taints if node.spec else None) or ():
        if signs.names_taint(taint.key, taint.value, taint.effect):
            yield f"taint {taint.key}"
    for condition in (node.status.conditions if node.status else None) or ():
        if condition.status == "True" and signs.names_condition(condition.type):
            yield f"condition {condition.type}"

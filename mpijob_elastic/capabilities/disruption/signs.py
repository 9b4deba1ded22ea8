"""Signs of a disruption: taints, labels and conditions that announce a node's end.

Clouds, autoscalers, monitors and people set them. A named sign means the node's end, whatever a pod
tolerates. A NoExecute taint also means it for a pod that does not tolerate the taint for ever,
except Kubernetes' own taints: those report a lost node, whose workers are not Ready.
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/

A condition counts by its status: True at once, or False once it has been False for some time,
because agents that report health are restarted and flap. Unknown never counts: it only means that
nobody has reported.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.model.node import Node, NodeCondition, NodeSign, Signs
from mpijob_elastic.model.pod import NO_EXECUTE, Taint, is_built_in

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Seconds for which a condition must have been False before it counts.
FALSE_FOR = 300.0
_KEY = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
_VALUE = "[-A-Za-z0-9_.]"
# The characters of a text that an error quotes.
_QUOTED = 64


class Carrier(StrEnum):
    """What carries the sign."""

    TAINT = "taint"
    LABEL = "label"
    CONDITION = "condition"


_FORMS = {
    Carrier.TAINT: re.compile(rf"{_KEY}(?:=(?P<values>{_VALUE}*))?(?::(?P<effect>[A-Za-z]+))?"),
    Carrier.LABEL: re.compile(rf"{_KEY}(?:=(?P<values>{_VALUE}+(?:,{_VALUE}+)*))?"),
    Carrier.CONDITION: re.compile(rf"{_KEY}(?:=(?P<values>True|False))?"),
}


class BadSign(ValueError):
    """The text is not a sign."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A sign by its key, and by what else is given."""

    kind: Carrier
    #: The key of a taint or label, or the type of a condition.
    key: str
    #: The values that count of a taint or label, or the status of a condition; () for any value.
    values: tuple[str, ...] = ()
    #: The effect that counts of a taint; None for any effect.
    effect: str | None = None
    #: Seconds for which a condition must have had its status.
    lasts: float = 0.0
    #: The sign counts only while the node is cordoned.
    while_cordoned: bool = False
    #: A text in the message of a condition that makes it mere advice; "" if it is always a sign.
    advice: str = ""
    #: Workers may leave one after another, because the node does not go at a set time.
    can_wait: bool = True

    def counts(self, value: str) -> bool:
        """Return True if that value or status is one that counts."""
        return not self.values or value in self.values


@dataclass(frozen=True, kw_only=True)
class NodeSigns(Signs):
    """The signs that count."""

    #: The signs, by what carries them and by their key.
    named: Mapping[tuple[Carrier, str], tuple[Sign, ...]]
    #: What never counts, by what carries it and by its key.
    ignored: frozenset[tuple[Carrier, str]] = frozenset()

    def of(self, node: Node) -> tuple[NodeSign, ...]:
        """Return the signs on a node that count whatever a pod tolerates."""
        cordoned = bool(node.spec and node.spec.unschedulable)
        taints = (node.spec.taints if node.spec else None) or ()
        conditions = (node.status.conditions if node.status else None) or ()
        found = [
            *(sign for taint in taints for sign in self._of_taint(taint)),
            *self._of_labels(node.metadata.labels),
            *(sign for one in conditions for sign in self._of_condition(one, cordoned=cordoned)),
        ]
        return tuple(found)

    def evicts(self, key: str, effect: str) -> bool:
        """Return True if that taint makes pods leave that do not tolerate it."""
        return effect == NO_EXECUTE and not (self._ignores(Carrier.TAINT, key) or is_built_in(key))

    def _ignores(self, kind: Carrier, key: str) -> bool:
        return (kind, key) in self.ignored

    def _named(self, kind: Carrier, key: str) -> tuple[Sign, ...]:
        """Return the signs of that key that count."""
        if self._ignores(kind, key):
            return ()
        return self.named.get((kind, key), ())

    def _of_taint(self, taint: Taint) -> Iterator[NodeSign]:
        for sign in self._named(Carrier.TAINT, taint.key):
            if sign.counts(taint.value) and sign.effect in (None, taint.effect):
                yield NodeSign(words=f"taint {taint.key}", can_wait=sign.can_wait)

    def _of_labels(self, labels: Mapping[str, str]) -> Iterator[NodeSign]:
        for kind, key in self.named:
            if kind is not Carrier.LABEL or key not in labels:
                continue
            for sign in self._named(kind, key):
                if sign.counts(labels[key]):
                    words = f"label {key}={labels[key]}"
                    yield NodeSign(words=words, can_wait=sign.can_wait)

    def _of_condition(self, found: NodeCondition, *, cordoned: bool) -> Iterator[NodeSign]:
        for sign in self._named(Carrier.CONDITION, found.type):
            if not sign.counts(found.status) or (sign.while_cordoned and not cordoned):
                continue
            if sign.advice and sign.advice in found.message:
                continue
            begins_at = _begins_at(sign, found)
            if begins_at is not None:
                yield NodeSign(words=_words(found), begins_at=begins_at, can_wait=sign.can_wait)


def _begins_at(sign: Sign, found: NodeCondition) -> float | None:
    """Return from when a condition counts; None if nobody knows how long it has had its status."""
    if not sign.lasts:
        return 0.0
    changed_at = seconds(found.last_transition_time)
    return None if changed_at is None else changed_at + sign.lasts


def _words(found: NodeCondition) -> str:
    status = "" if found.status == "True" else f"={found.status}"
    return f"condition {found.type}{status}"


def node_signs(signs: Iterable[Sign], *, ignored: Iterable[str] = ()) -> NodeSigns:
    """Return these signs, less those of which `ignored` names the key. Raises BadSign."""
    named: dict[tuple[Carrier, str], list[Sign]] = defaultdict(list)
    for sign in signs:
        named[sign.kind, sign.key].append(sign)
    keys = (_parsed(text) for text in ignored)
    return NodeSigns(
        named={key: tuple(found) for key, found in named.items()},
        ignored=frozenset((kind, match["key"]) for kind, match in keys),
    )


def parse(text: str) -> Sign:
    """Parse a sign as an option of the controller names it.

    `KEY[=VALUE][:EFFECT]` is a taint, `label:KEY=VALUE[,VALUE...]` a label, and
    `condition:TYPE[=True|=False]` a condition. Raises BadSign.
    """
    kind, match = _parsed(text)
    key, values = match["key"], match["values"]
    if kind is Carrier.TAINT:
        effect = match["effect"]
        # Somebody decided on the end that a taint announces; the other signs are reports.
        return Sign(kind=kind, key=key, values=_listed(values), effect=effect, can_wait=False)
    if kind is Carrier.LABEL:
        if values is None:
            raise _bad(text, f"a label needs the values that count: label:{key}=VALUE[,VALUE...]")
        return Sign(kind=kind, key=key, values=tuple(values.split(",")))
    status = values or "True"
    return Sign(kind=kind, key=key, values=(status,), lasts=FALSE_FOR if status == "False" else 0.0)


def _listed(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _parsed(text: str) -> tuple[Carrier, re.Match[str]]:
    """Return what carries a sign, and the parts of its text. Raises BadSign."""
    before, colon, after = text.partition(":")
    kind = Carrier.TAINT
    if colon and before in (Carrier.LABEL, Carrier.CONDITION):
        kind, text_of_kind = Carrier(before), after
    else:
        text_of_kind = text
    match = _FORMS[kind].fullmatch(text_of_kind)
    if match is None:
        raise _bad(text)
    if kind is Carrier.TAINT and match["effect"] not in (None, *EFFECTS):
        raise _bad(text)
    return kind, match


def _bad(text: str, why: str = "") -> BadSign:
    form = (
        "KEY[=VALUE][:EFFECT] of a taint, or condition:TYPE[=False], or "
        f"label:KEY=VALUE[,VALUE...], with an effect of {', '.join(EFFECTS)}; a condition that is "
        "Unknown never counts"
    )
    said = f"; {why}" if why else ""
    return BadSign(f'"{text[:_QUOTED]}" is not a disruption sign; use {form}{said}')

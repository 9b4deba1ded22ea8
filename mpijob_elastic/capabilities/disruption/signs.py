"""Signs of a disruption: taints and conditions that announce a node's end.

Clouds, autoscalers and people set them. A named sign means the node's end, whatever a pod
tolerates. A NoExecute taint also means it for a pod that does not tolerate the taint for ever,
except Kubernetes' own taints: those report a lost node, whose workers are not Ready.
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic.model import pod
from mpijob_elastic.model.pod import NO_EXECUTE, is_built_in

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CONDITION = "condition:"
_SIGN = re.compile(
    r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)(?:=(?P<value>[-A-Za-z0-9_.]*))?(?::(?P<effect>[A-Za-z]+))?"
)

DEFAULT = (
    # cluster-autoscaler/utils/taints/taints.go; its DeletionCandidate... is no decision yet.
    "ToBeDeletedByClusterAutoscaler",
    # https://karpenter.sh/docs/concepts/disruption/; until v0.37 it was `disruption`.
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    # https://pkg.go.dev/github.com/aws/aws-node-termination-handler/pkg/node, with its option
    # --taint-node
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/rebalance-recommendation",
    # GKE's maintenance-handler on nodes with accelerators, an argument of its DaemonSet
    "cloud.google.com/impending-node-termination",
    # https://learn.microsoft.com/en-us/azure/aks/node-auto-drain; the second is its former name.
    "remediator.kubernetes.azure.com/unschedulable",
    "remediator.aks.microsoft.com/unschedulable",
    # ack-node-problem-detector: a spot instance is about to be released
    # (https://www.alibabacloud.com/help/en/container-service-for-kubernetes/latest/check-whether-a-preemptible-instance-is-about-to-expire).
    "condition:InstanceExpired",
)


class BadSign(ValueError):
    """The text is not a sign."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A taint by key, and by value and effect if given; or a condition that is True, by type."""

    key: str
    value: str | None = None
    effect: str | None = None
    condition: bool = False


@dataclass(frozen=True, kw_only=True)
class NodeSigns(pod.Signs):
    """The signs that count."""

    #: The taints and conditions that mean a node's end.
    named: tuple[Sign, ...]
    #: Keys of taints and types of conditions that never count.
    ignored: frozenset[str] = frozenset()

    def names_taint(self, key: str, value: str, effect: str) -> bool:
        """Return True if that taint is a named sign."""
        found = (
            sign
            for sign in self.named
            if sign.key == key and key not in self.ignored and not sign.condition
        )
        return any(sign.value in (None, value) and sign.effect in (None, effect) for sign in found)

    def names_condition(self, kind: str) -> bool:
        """Return True if a condition of that type is a named sign."""
        return kind not in self.ignored and any(
            sign.condition and sign.key == kind for sign in self.named
        )

    def evicts(self, key: str, effect: str) -> bool:
        """Return True if that taint makes pods leave that do not tolerate it."""
        return effect == NO_EXECUTE and key not in self.ignored and not is_built_in(key)


def signs(*, more: Iterable[str] = (), ignored: Iterable[str] = ()) -> NodeSigns:
    """Return the default signs and `more`, given as texts (see `parse`). Raises BadSign."""
    return NodeSigns(
        named=tuple(map(parse, (*DEFAULT, *more))),
        ignored=frozenset(parse(text).key for text in ignored),
    )


def parse(text: str) -> Sign:
    """Parse `KEY`, `KEY=VALUE`, `KEY:EFFECT`, `KEY=VALUE:EFFECT` or `condition:TYPE`.

    Raises BadSign.
    """
    condition = text.startswith(_CONDITION)
    match = _SIGN.fullmatch(text.removeprefix(_CONDITION))
    if (
        match is None
        or match["effect"] not in (None, *EFFECTS)
        or (condition and (match["value"] or match["effect"]))
    ):
        form = "KEY[=VALUE][:EFFECT] of a taint, or condition:TYPE"
        raise BadSign(
            f'"{text[:64]}" is not a disruption sign; use {form}, with an effect of '
            f"{', '.join(EFFECTS)}"
        )
    return Sign(key=match["key"], value=match["value"], effect=match["effect"], condition=condition)

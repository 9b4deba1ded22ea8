"""Taints and conditions by which a node is about to go."""

import pytest

from mpijob_elastic.model import disruption_signs
from mpijob_elastic.model.disruption_signs import BadSign, Sign


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a.b/c", Sign(key="a.b/c")),
        ("a.b/c=d", Sign(key="a.b/c", value="d")),
        ("a.b/c=", Sign(key="a.b/c", value="")),
        ("a.b/c:NoSchedule", Sign(key="a.b/c", effect="NoSchedule")),
        ("a=d:NoExecute", Sign(key="a", value="d", effect="NoExecute")),
        ("condition:InstanceExpired", Sign(key="InstanceExpired", condition=True)),
    ],
)
def test_a_sign_is_read(text: str, sign: Sign) -> None:
    assert disruption_signs.parse(text) == sign


@pytest.mark.parametrize("text", ["", "a b", "a:Soon", "=x", "/a", "a:", "condition:", "condition:A=b", "a=b=c", "x\n"])
def test_what_is_no_sign_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(BadSign, match=r"use KEY\[=VALUE\]\[:EFFECT\] of a taint, or condition:TYPE"):
        disruption_signs.parse(text)


@pytest.mark.parametrize(
    ("key", "value", "effect", "named"),
    [
        ("ToBeDeletedByClusterAutoscaler", "1700000000", "NoSchedule", True),
        ("karpenter.sh/disrupted", "", "NoSchedule", True),
        ("aws-node-termination-handler/spot-itn", "event", "PreferNoSchedule", True),
        ("cloud.google.com/impending-node-termination", "", "NoSchedule", True),
        ("node.kubernetes.io/unschedulable", "", "NoSchedule", False),
        ("InstanceExpired", "", "NoSchedule", False),
        ("mine", "yes", "NoSchedule", True),
        ("mine", "no", "NoSchedule", False),
        ("mine", "yes", "NoExecute", False),
        ("karpenter.sh/disruption", "disrupting", "NoSchedule", False),
    ],
)
def test_named_taints(key: str, value: str, effect: str, named: bool) -> None:
    wanted = disruption_signs.signs(more=["mine=yes:NoSchedule"], ignored=["karpenter.sh/disruption"])
    assert wanted.names_taint(key, value, effect) is named


@pytest.mark.parametrize(("ignored", "named"), [([], True), (["condition:InstanceExpired"], False)])
def test_named_conditions(ignored: list[str], named: bool) -> None:
    wanted = disruption_signs.signs(ignored=ignored)
    assert wanted.names_condition("InstanceExpired") is named
    assert not wanted.names_condition("Ready")


@pytest.mark.parametrize(
    ("key", "effect", "evicts"),
    [
        ("maintenance", "NoExecute", True),
        ("maintenance", "NoSchedule", False),
        ("ours", "NoExecute", False),
        # A node that is lost is no notice: its workers are not Ready.
        ("node.kubernetes.io/not-ready", "NoExecute", False),
        ("node.kubernetes.io/unreachable", "NoExecute", False),
        ("node.kubernetes.io/out-of-service", "NoExecute", False),
        ("node.cloudprovider.kubernetes.io/shutdown", "NoExecute", False),
        ("my.node.kubernetes.io/x", "NoExecute", True),
    ],
)
def test_taints_that_make_pods_leave(key: str, effect: str, evicts: bool) -> None:
    assert disruption_signs.signs(ignored=["ours"]).evicts(key, effect) is evicts

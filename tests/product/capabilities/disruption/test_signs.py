"""Signs of a node's end: how they are written, and on which nodes each counts."""

import json
from typing import Any

import pytest

from mpijob_elastic.capabilities.disruption import signs as grammar
from mpijob_elastic.capabilities.disruption.known_signs import KNOWN, signs
from mpijob_elastic.capabilities.disruption.signs import BadSign, Carrier, Sign
from mpijob_elastic.model.node import NodeSign
from mpijob_elastic.observe.nodes import reading

AT = "2026-11-29T10:00:00Z"
AT_SECONDS = 1_795_946_400.0
MINUTE = 60.0


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a.b/c=d", Sign(kind=Carrier.TAINT, key="a.b/c", values=("d",), can_wait=False)),
        ("a.b/c=", Sign(kind=Carrier.TAINT, key="a.b/c", values=("",), can_wait=False)),
        (
            "a.b/c:NoSchedule",
            Sign(kind=Carrier.TAINT, key="a.b/c", effect="NoSchedule", can_wait=False),
        ),
        (
            "a=d:NoExecute",
            Sign(kind=Carrier.TAINT, key="a", values=("d",), effect="NoExecute", can_wait=False),
        ),
        (
            "condition:InstanceExpired",
            Sign(kind=Carrier.CONDITION, key="InstanceExpired", values=("True",)),
        ),
        ("condition:A=True", Sign(kind=Carrier.CONDITION, key="A", values=("True",))),
        (
            "condition:a.b/Ready=False",
            Sign(kind=Carrier.CONDITION, key="a.b/Ready", values=("False",), lasts=5 * MINUTE),
        ),
        ("label:a.b/c=d", Sign(kind=Carrier.LABEL, key="a.b/c", values=("d",))),
        ("label:a=d,e-f.g", Sign(kind=Carrier.LABEL, key="a", values=("d", "e-f.g"))),
        # These words are only a beginning with a colon.
        ("label=x", Sign(kind=Carrier.TAINT, key="label", values=("x",), can_wait=False)),
        ("condition", Sign(kind=Carrier.TAINT, key="condition", can_wait=False)),
    ],
)
def test_a_sign_is_read(text: str, sign: Sign) -> None:
    assert grammar.parse(text) == sign


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a:Soon",
        "=x",
        "/a",
        "a:",
        "condition:",
        "condition:A=b",
        "a=b=c",
        "x\n",
        "condition:A=Unknown",
        "condition:A=false",
        "condition:A:NoSchedule",
        "label:",
        "label:a=",
        "label:a=b,",
        "label:a=b c",
        "label:a=b:NoSchedule",
        "a=b,c",
        "node:a",
    ],
)
def test_what_is_no_sign_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(
        BadSign,
        match=r"use KEY\[=VALUE\]\[:EFFECT\] of a taint, or condition:TYPE\[=False\], or "
        r"label:KEY=VALUE\[,VALUE\.\.\.\]",
    ):
        grammar.parse(text)


def test_a_label_alone_is_refused_with_what_it_lacks() -> None:
    """Any value would count, and so would that of a healthy node."""
    with pytest.raises(BadSign, match=r"a label needs the values that count: label:a=VALUE"):
        grammar.parse("label:a")


def on(
    *,
    taints: tuple[dict[str, str], ...] = (),
    labels: dict[str, str] | None = None,
    cordoned: bool = False,
    more: tuple[str, ...] = (),
    ignored: tuple[str, ...] = (),
    **conditions: str | dict[str, str],
) -> list[NodeSign]:
    """The signs on a node; conditions by their type with "_" for "/"; each has changed at AT."""
    found = [
        {"lastTransitionTime": AT, "type": kind.replace("__", "/").replace("_", ".")}
        | (said if isinstance(said, dict) else {"status": said})
        for kind, said in conditions.items()
    ]
    body: dict[str, Any] = {
        "metadata": {"name": "n", "labels": labels or {}},
        "spec": {"taints": taints, "unschedulable": cordoned},
        "status": {"conditions": found},
    }
    read = reading(signs(more=more, ignored=ignored))
    return list(read(json.dumps(body).encode()).named)


def words(found: list[NodeSign]) -> list[str]:
    return [sign.words for sign in found]


@pytest.mark.parametrize(
    ("key", "value", "effect", "named"),
    [
        ("ToBeDeletedByClusterAutoscaler", "1700000000", "NoSchedule", True),
        ("aws-node-termination-handler/spot-itn", "event", "PreferNoSchedule", True),
        ("node.kubernetes.io/unschedulable", "", "NoSchedule", False),
        ("InstanceExpired", "", "NoSchedule", False),
        ("mine", "yes", "NoSchedule", True),
        ("mine", "no", "NoSchedule", False),
        ("mine", "yes", "NoExecute", False),
        ("karpenter.sh/disruption", "disrupting", "NoSchedule", False),
        ("karpenter.sh/rebooting", "", "NoSchedule", True),
        ("cloud.google.com/maintenance-window-started", "", "PreferNoSchedule", True),
        ("amd-gpu-unhealthy", "", "NoSchedule", True),
        ("node.willDelete", "", "NoSchedule", True),
        ("medik8s.io/drain", "", "NoSchedule", True),
        ("nvsentinel.dgxc.nvidia.com/external-remediation", "", "NoSchedule", True),
        # They stand on nodes that stay, or on nodes that are lost already.
        ("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule", False),
        ("oci.oraclecloud.com/oke-is-preemptible", "", "NoSchedule", False),
        ("medik8s.io/remediation", "self-node-remediation", "NoExecute", False),
        ("node.cluster.x-k8s.io/outdated-revision", "", "PreferNoSchedule", False),
        ("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule", False),
    ],
)
def test_named_taints(key: str, value: str, effect: str, named: bool) -> None:
    found = on(
        taints=({"key": key, "value": value, "effect": effect},),
        more=("mine=yes:NoSchedule",),
        ignored=("karpenter.sh/disruption",),
    )
    assert words(found) == [f"taint {key}"] * named


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ({"InstanceExpired": "True"}, "condition InstanceExpired"),
        ({"InstanceExpired": "False"}, ""),
        ({"InstanceExpired": "Unknown"}, ""),
        ({"Ready": "False"}, ""),
        ({"DrainInProgress": "True"}, "condition DrainInProgress"),
        (
            {"GracefulNodeShutdownInProgress": "True"},
            "condition GracefulNodeShutdownInProgress",
        ),
        # It may be days ahead.
        ({"MaintenancePlanned": "True"}, ""),
        ({"MaintenanceInProgress": "True", "Drained": "True"}, ""),
        ({"PreemptionScheduled": "True"}, "condition PreemptionScheduled"),
        (
            {"PreemptionScheduled": {"status": "True", "message": "Preempt Scheduled: now"}},
            "condition PreemptionScheduled",
        ),
        (
            {
                "PreemptionScheduled": {
                    "status": "True",
                    "message": "SpotRebalanceRecommendation: move on",
                }
            },
            "",
        ),
        ({"VMEventScheduled": "True", "CSPMaintenance": "True", "GPUMissing": "True"}, ""),
        (
            {"SpotPriceNodeReclaimNotification": "True"},
            "condition SpotPriceNodeReclaimNotification",
        ),
        ({"AcceleratedHardwareReady": "True"}, ""),
        ({"AcceleratedHardwareReady": "Unknown"}, ""),
        ({"AcceleratedHardwareReady": "False"}, "condition AcceleratedHardwareReady=False"),
        ({"kubernetes_azure_com__NodeHealthy": "Unknown"}, ""),
        (
            {"kubernetes_azure_com__NodeHealthy": "False"},
            "condition kubernetes.azure.com/NodeHealthy=False",
        ),
        ({"Mine": "False"}, "condition Mine=False"),
        ({"Mine": "True"}, ""),
        # Nobody knows for how long.
        ({"Mine": {"status": "False", "lastTransitionTime": ""}}, ""),
        ({"Mine": {"status": "False", "lastTransitionTime": "yesterday"}}, ""),
    ],
)
def test_named_conditions(conditions: dict[str, Any], named: str) -> None:
    assert words(on(more=("condition:Mine=False",), **conditions)) == [named] * bool(named)


@pytest.mark.parametrize(
    ("kind", "lasts"),
    [
        ("AcceleratedHardwareReady", 10 * MINUTE),
        ("ContainerRuntimeReady", 30 * MINUTE),
        ("KernelReady", 30 * MINUTE),
        ("NetworkingReady", 30 * MINUTE),
        ("StorageReady", 30 * MINUTE),
        ("Mine", 5 * MINUTE),
    ],
)
def test_a_false_condition_counts_when_its_setter_acts(kind: str, lasts: float) -> None:
    conditions: dict[str, Any] = {kind: "False"}
    [found] = on(more=("condition:Mine=False",), **conditions)
    assert found.begins_at == AT_SECONDS + lasts


def test_a_condition_whose_setter_acts_at_once_counts_at_once() -> None:
    [found] = on(kubernetes_azure_com__NodeHealthy="False")
    assert found.begins_at == 0.0


def test_a_drain_that_is_scheduled_counts_while_the_node_is_cordoned() -> None:
    """Draino's condition stays True after the drain."""
    assert on(DrainScheduled="True") == []
    assert words(on(DrainScheduled="True", cordoned=True)) == ["condition DrainScheduled"]


STATE = "nvidia.com/gpu-driver-upgrade-state"
SENTINEL = "dgxc.nvidia.com/nvsentinel-state"
HYPERPOD = "sagemaker.amazonaws.com/node-health-status"


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (HYPERPOD, "Schedulable", False),
        # The node is checked before it gets work.
        (HYPERPOD, "Unschedulable", False),
        (HYPERPOD, "UnschedulablePendingReplacement", True),
        (HYPERPOD, "UnschedulablePendingReboot", True),
        (SENTINEL, "quarantined", True),
        (SENTINEL, "draining", True),
        (SENTINEL, "drain-failed", True),
        (SENTINEL, "remediating", True),
        (SENTINEL, "remediation-failed", True),
        (SENTINEL, "remediation-succeeded", False),
        # The order in which a node passes through the states of an upgrade.
        (STATE, "upgrade-required", False),
        (STATE, "cordon-required", False),
        (STATE, "wait-for-jobs-required", False),
        (STATE, "node-maintenance-required", False),
        (STATE, "pod-deletion-required", True),
        (STATE, "drain-required", True),
        (STATE, "pod-restart-required", True),
        (STATE, "validation-required", False),
        (STATE, "uncordon-required", False),
        (STATE, "upgrade-done", False),
        (STATE, "upgrade-failed", False),
        ("k8saas.nvidia.com/cordon-by", "NVSentinel", False),
        ("mine", "x", True),
        ("mine", "y", True),
        ("mine", "z", False),
        ("mine", "", False),
    ],
)
def test_named_labels(key: str, value: str, named: bool) -> None:
    found = on(labels={key: value, "other": "x"}, more=("label:mine=x,y",))
    assert words(found) == [f"label {key}={value}"] * named


@pytest.mark.parametrize("text", [known.text for known in KNOWN])
def test_each_known_sign_can_be_ignored(text: str) -> None:
    [known] = [known for known in KNOWN if known.text == text]
    sign = known.sign
    value = next(iter(sign.values), "")
    node: dict[str, Any] = {"cordoned": True}
    if sign.kind is Carrier.TAINT:
        node["taints"] = ({"key": sign.key, "effect": "NoSchedule"},)
    elif sign.kind is Carrier.LABEL:
        node["labels"] = {sign.key: value}
    else:
        node[sign.key.replace("/", "__").replace(".", "_")] = value
    assert len(on(**node)) == 1
    assert on(**node, ignored=(text,)) == []
    assert on(**node, ignored=(text.partition("=")[0],)) == []
    assert len(on(**node, ignored=("other", f"label:{sign.key}x"))) == 1


def test_a_sign_of_ones_own_is_sooner_than_the_same_that_is_known() -> None:
    found = on(more=("condition:KernelReady=False",), KernelReady="False")
    assert min(sign.begins_at for sign in found) == AT_SECONDS + 5 * MINUTE


def test_each_known_sign_has_a_setter_and_a_source() -> None:
    for known in KNOWN:
        assert known.set_by
        assert known.source.startswith("https://")
    texts = [known.text for known in KNOWN]
    assert len(set(texts)) == len(texts)


def test_a_taint_is_a_decision_and_what_else_a_user_names_is_a_report() -> None:
    texts = ("a", "label:a=b", "condition:A", "condition:A=False")
    assert [grammar.parse(text).can_wait for text in texts] == [False, True, True, True]
    [spot] = [known.sign for known in KNOWN if known.text.endswith("spot-itn")]
    assert not spot.can_wait


@pytest.mark.parametrize(
    ("key", "effect", "evicts"),
    [
        ("maintenance", "NoExecute", True),
        ("maintenance", "NoSchedule", False),
        ("ours", "NoExecute", False),
        # A node that is lost is no notice: its workers are not Ready.
        ("node.kubernetes.io/unreachable", "NoExecute", False),
        ("node.kubernetes.io/out-of-service", "NoExecute", False),
        ("node.cloudprovider.kubernetes.io/shutdown", "NoExecute", False),
        ("my.node.kubernetes.io/x", "NoExecute", True),
    ],
)
def test_taints_that_make_pods_leave(key: str, effect: str, evicts: bool) -> None:
    assert signs(ignored=["ours"]).evicts(key, effect) is evicts

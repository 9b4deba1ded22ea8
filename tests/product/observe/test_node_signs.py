"""The facts of a node, and the pods that go with it."""

import json
from typing import Any

import pytest

from mpijob_elastic.model.disruption_signs import Toleration, signs
from mpijob_elastic.observe import nodes
from mpijob_elastic.observe.nodes import NodeFacts


def node(*taints: tuple[str, str], conditions: dict[str, str] | None = None) -> NodeFacts:
    """A node with these taints, as key and effect, and these conditions."""
    body: dict[str, Any] = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"taints": [{"key": key, "effect": effect, "timeAdded": None} for key, effect in taints]},
        "status": {"conditions": [{"type": key, "status": value} for key, value in (conditions or {}).items()]},
    }
    return nodes.reading(signs())(json.dumps(body).encode())


EVICTING = ("maintenance", "NoExecute")
NAMED = ("karpenter.sh/disrupted", "NoSchedule")


@pytest.mark.parametrize(
    ("facts", "threat"),
    [
        (node(), ""),
        (node(("gpu", "NoSchedule")), ""),
        (node(("node.kubernetes.io/not-ready", "NoExecute")), ""),
        (node(("gpu", "NoSchedule"), NAMED), "taint karpenter.sh/disrupted"),
        (node(EVICTING), "taint maintenance:NoExecute"),
        (node(EVICTING, NAMED), "taint karpenter.sh/disrupted"),
        (node(conditions={"Ready": "True", "InstanceExpired": "True"}), "condition InstanceExpired"),
        (node(conditions={"Ready": "True", "InstanceExpired": "False"}), ""),
    ],
)
def test_why_a_pod_goes_with_its_node(facts: NodeFacts, threat: str) -> None:
    assert facts.threat([]) == threat
    assert any(facts.signs) is bool(threat)


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        (Toleration(key="maintenance", operator="Exists"), True),
        (Toleration(key="maintenance", operator="Exists", effect="NoExecute"), True),
        (Toleration(key="maintenance", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="maintenance", operator="Exists", seconds=300), False),
        (Toleration(operator="Exists"), True),
        (Toleration(key="maintenance"), True),
        (Toleration(key="maintenance", value="other"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="node.kubernetes.io/not-ready", operator="Exists"), False),
    ],
)
def test_who_tolerates_a_taint_for_ever_stays(toleration: Toleration, stays: bool) -> None:
    assert bool(node(EVICTING).threat([toleration])) is not stays
    # The end of a node is nobody's to tolerate.
    assert node(NAMED).threat([toleration])


def test_one_taint_of_two_is_enough() -> None:
    facts = node(EVICTING, ("other", "NoExecute"))
    assert facts.threat([Toleration(key="maintenance", operator="Exists")]) == "taint other:NoExecute"


def test_a_node_without_spec_and_status_is_read() -> None:
    assert nodes.reading(signs())(b'{"metadata": {"name": "n"}}').signs == ("", ())

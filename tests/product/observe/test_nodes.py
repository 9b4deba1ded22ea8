"""Nodes that are about to go or are gone, and the pods that are told of it."""

import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.disruption.known_signs import signs
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.pod import PodFacts, Toleration
from mpijob_elastic.observe import facts_pod, nodes
from mpijob_elastic.observe.nodes import NodeFacts, Nodes
from tests.builders import NOW
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Freeze, everything, watches
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.kube.watched import running

PATH = NODES.path()
GOING = {"taints": [{"key": "karpenter.sh/disruption", "effect": "NoSchedule"}]}


class Watched(Nodes):
    """Nodes and the names that were told of."""

    def __init__(self, client: ApiWriter) -> None:
        self.told: list[str] = []
        super().__init__(
            client, signs=signs(), on_change=self.told.append, random=Random(1), now=lambda: NOW
        )


@pytest.fixture
async def watched(api: TinyApi, client: ApiWriter) -> AsyncIterator[Watched]:
    await api.create(PATH, "a", spec=GOING)
    await api.create(PATH, "b", spec={})
    found = Watched(client)
    async with running(found.run()):
        await found.synced()
        yield found


def pod(node: str, *conditions: dict[str, str]) -> PodFacts:
    body: dict[str, Any] = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node},
        "status": {"conditions": conditions},
    }
    return facts_pod.read(json.dumps(body).encode())


def threats(found: Nodes, *pods: PodFacts) -> list[str]:
    return [one.disruption for one in found.judge(pods)]


async def test_pods_are_told_what_their_foundsay(watched: Watched) -> None:
    evicted = pod(
        "a", {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    )
    assert threats(watched, pod("a"), pod("b"), pod(""), evicted) == [
        "taint karpenter.sh/disruption",
        "",
        "",
        "condition DisruptionTarget (PreemptionByScheduler)",
    ]


async def test_only_what_begins_or_ceases_to_go_is_told(api: TinyApi, watched: Watched) -> None:
    assert watched.told == ["a"]
    await api.update(PATH, "b", status={"phase": "x"})
    await api.update(PATH, "b", spec=GOING)
    await eventually(lambda: watched.told == ["a", "b"])
    assert threats(watched, pod("b")) == ["taint karpenter.sh/disruption"]
    await api.update(PATH, "a", spec={"taints": []})
    await eventually(lambda: watched.told == ["a", "b", "a"])
    await api.delete(PATH, "b")
    await eventually(lambda: watched.told == ["a", "b", "a", "b"])
    assert threats(watched, pod("a"), pod("b")) == ["", ""]
    await api.delete(PATH, "a")
    await eventually(lambda: watched.told == ["a", "b", "a", "b", "a"])


def gone(found: Nodes, *names: str) -> list[bool]:
    return [one.node_gone_at == NOW for one in found.judge(map(pod, names))]


async def test_a_node_is_gone_once_it_was_seen_and_deleted(
    api: TinyApi, client: ApiWriter, watched: Watched
) -> None:
    assert gone(watched, "a", "b", "") == [False, False, False]
    await api.delete(PATH, "b")
    await eventually(lambda: gone(watched, "a", "b", "") == [False, True, False])
    assert watched.told == ["a", "b"]
    assert gone(Watched(client), "b") == [False], "where nodes are not known, none is missed"
    await api.create(PATH, "b", spec={})
    await eventually(lambda: gone(watched, "b") == [False])


async def test_a_node_that_was_never_seen_is_not_gone(
    api: TinyApi, proxy: FaultProxy, watched: Watched
) -> None:
    """Its watch hangs, or the right to it was taken away: a node that joins meanwhile is not in the cache."""
    with proxy.inject(Freeze(), on=watches):
        await api.create(PATH, "c", spec={})
        assert gone(watched, "c") == [False]


async def test_a_node_is_gone_only_if_a_live_read_says_so_too(
    api: TinyApi, proxy: FaultProxy, watched: Watched
) -> None:
    await api.delete(PATH, "b")
    await eventually(lambda: gone(watched, "b") == [True])
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=everything):
        assert not await watched.is_gone("b"), "who may not look does not know"
    assert await watched.is_gone("b")
    # It came back, and the watch has not said so.
    api.objects[f"{PATH}/b"] = {"metadata": {"name": "b"}}
    assert not await watched.is_gone("b")
    assert gone(watched, "b") == [False], "nobody need ask again"


def node(*taints: tuple[str, str], conditions: dict[str, str] | None = None) -> NodeFacts:
    """A node with these taints, as key and effect, and these conditions."""
    body: dict[str, Any] = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "taints": [{"key": key, "effect": effect, "timeAdded": None} for key, effect in taints]
        },
        "status": {
            "conditions": [
                {"type": key, "status": value} for key, value in (conditions or {}).items()
            ]
        },
    }
    return nodes.reading(signs())(json.dumps(body).encode())


def said(facts: NodeFacts, *tolerations: Toleration) -> str:
    """Why a pod with these tolerations goes, in words."""
    sign = facts.threat(tolerations)
    return sign.words if sign else ""


EVICTING = ("maintenance", "NoExecute")
NAMED = ("karpenter.sh/disruption", "NoSchedule")


@pytest.mark.parametrize(
    ("facts", "threat"),
    [
        (node(), ""),
        (node(("gpu", "NoSchedule")), ""),
        (node(("node.kubernetes.io/not-ready", "NoExecute")), ""),
        (node(("gpu", "NoSchedule"), NAMED), "taint karpenter.sh/disruption"),
        (node(EVICTING), "taint maintenance:NoExecute"),
        (node(EVICTING, NAMED), "taint karpenter.sh/disruption"),
        (nodes.reading(signs())(b'{"metadata": {"name": "n"}}'), ""),
        (
            node(conditions={"Ready": "True", "InstanceExpired": "True"}),
            "condition InstanceExpired",
        ),
        (node(conditions={"Ready": "True", "InstanceExpired": "False"}), ""),
    ],
)
def test_why_a_pod_goes_with_its_node(facts: NodeFacts, threat: str) -> None:
    assert said(facts) == threat
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


def timed(**since: str) -> NodeFacts:
    """A node on which these conditions have been False since a minute of an hour."""
    conditions = [
        {"type": kind, "status": "False", "lastTransitionTime": f"2026-11-29T10:{minute}:00Z"}
        for kind, minute in since.items()
    ]
    body = {"metadata": {"name": "n"}, "status": {"conditions": conditions}}
    return nodes.reading(signs())(json.dumps(body).encode())


def test_the_sign_counts_that_begins_first() -> None:
    # One counts after ten minutes, the other after thirty.
    sign = timed(KernelReady="00", AcceleratedHardwareReady="25").threat([])
    assert sign is not None
    assert sign.words == "condition KernelReady=False"
    sign = timed(KernelReady="00", AcceleratedHardwareReady="15").threat([])
    assert sign is not None
    assert sign.words == "condition AcceleratedHardwareReady=False"


def test_a_node_waits_only_if_no_sign_hurries() -> None:
    hurries = [facts.threat([]) for facts in (node(NAMED), node(EVICTING), node(NAMED, EVICTING))]
    assert [sign is not None and sign.can_wait for sign in hurries] == [True, False, False]
    tolerated = Toleration(key="maintenance", operator="Exists")
    sign = node(NAMED, EVICTING).threat([tolerated])
    assert sign is not None
    assert sign.can_wait


async def test_pods_are_told_from_when_a_sign_counts(api: TinyApi, watched: Watched) -> None:
    condition = {"type": "KernelReady", "status": "False"}
    for status in ("Unknown", "False"):
        changed = condition | {"status": status, "lastTransitionTime": "1970-01-12T13:46:40Z"}
        await api.update(PATH, "b", status={"conditions": [changed]})
    await eventually(lambda: watched.told == ["a", "b"])
    [found] = watched.judge([pod("b")])
    assert (found.disruption, found.can_wait) == ("condition KernelReady=False", True)
    assert found.disruption_from == NOW + 1800
    assert [found.going(now=at) for at in (NOW + 1799, NOW + 1800)] == ["", found.disruption]
    await api.update(PATH, "b", status={"conditions": [condition | {"status": "True"}]})
    await eventually(lambda: watched.told == ["a", "b", "b"])
    assert threats(watched, pod("b")) == [""]


async def test_nothing_of_a_node_is_kept_but_its_signs() -> None:
    """Nodes have kilobytes of labels and annotations, and clusters have thousands of nodes."""
    text = {f"k{index}": "v" * 1000 for index in range(100)}
    body = {
        "metadata": {"name": "n", "labels": text, "annotations": text},
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": "m" * 9000}]},
    }
    facts = nodes.reading(signs())(json.dumps(body).encode())
    assert len(msgspec.json.encode(facts)) < 200


def test_one_taint_of_two_is_enough() -> None:
    facts = node(EVICTING, ("other", "NoExecute"))
    tolerated = Toleration(key="maintenance", operator="Exists")
    assert said(facts, tolerated) == "taint other:NoExecute"

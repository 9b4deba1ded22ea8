"""Pods are told of nodes that are about to go or are gone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.disruption_signs import signs
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.facts_pod import PodFacts
from mpijob_elastic.observe.nodes import Nodes
from tests.builders import NOW
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Freeze, everything, watches
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

PATH = NODES.path()
GOING = {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}


@dataclass
class Watched:
    """Nodes and the names that were told of."""

    nodes: Nodes
    told: list[str] = field(default_factory=list)


@pytest.fixture
async def watched(api: TinyApi, client: ApiWriter) -> AsyncIterator[Watched]:
    await api.create(PATH, "a", spec=GOING)
    await api.create(PATH, "b", spec={})
    told: list[str] = []
    nodes = Nodes(client, signs=signs(), on_change=told.append, random=Random(1), now=lambda: NOW)
    task = asyncio.create_task(nodes.run())
    await nodes.synced()
    yield Watched(nodes, told)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def pod(node: str, *conditions: dict[str, str]) -> PodFacts:
    body: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": {"conditions": conditions}}
    return facts_pod.read(json.dumps(body).encode())


def threats(nodes: Nodes, *pods: PodFacts) -> list[str]:
    return [one.disrupted for one in nodes.judge(pods)]


async def test_pods_are_told_what_their_nodes_say(watched: Watched) -> None:
    evicted = pod("a", {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"})
    assert threats(watched.nodes, pod("a"), pod("b"), pod(""), evicted) == [
        "taint karpenter.sh/disrupted",
        "",
        "",
        "condition DisruptionTarget (PreemptionByScheduler)",
    ]


async def test_only_what_begins_or_ceases_to_go_is_told(api: TinyApi, watched: Watched) -> None:
    assert watched.told == ["a"]
    await api.update(PATH, "b", status={"phase": "x"})
    await api.update(PATH, "b", spec=GOING)
    await eventually(lambda: watched.told == ["a", "b"])
    assert threats(watched.nodes, pod("b")) == ["taint karpenter.sh/disrupted"]
    await api.update(PATH, "a", spec={"taints": []})
    await eventually(lambda: watched.told == ["a", "b", "a"])
    await api.delete(PATH, "b")
    await eventually(lambda: watched.told == ["a", "b", "a", "b"])
    assert threats(watched.nodes, pod("a"), pod("b")) == ["", ""]
    await api.delete(PATH, "a")
    await eventually(lambda: watched.told == ["a", "b", "a", "b", "a"])


def gone(nodes: Nodes, *names: str) -> list[bool]:
    return [one.node_gone_at == NOW for one in nodes.judge(map(pod, names))]


async def test_a_node_is_gone_once_it_was_seen_and_deleted(api: TinyApi, client: ApiWriter, watched: Watched) -> None:
    assert gone(watched.nodes, "a", "b", "") == [False, False, False]
    await api.delete(PATH, "b")
    await eventually(lambda: gone(watched.nodes, "a", "b", "") == [False, True, False])
    assert watched.told == ["a", "b"]
    unknown = Nodes(client, signs=signs(), on_change=watched.told.append, random=Random(1), now=lambda: NOW)
    assert gone(unknown, "b") == [False], "where nodes are not known, none is missed"


async def test_a_node_that_was_never_seen_is_not_gone(api: TinyApi, proxy: FaultProxy, watched: Watched) -> None:
    """Its watch hangs, or the right to it was taken away: a node that joins meanwhile is not in the cache."""
    with proxy.inject(Freeze(), on=watches):
        await api.create(PATH, "c", spec={})
        assert gone(watched.nodes, "c") == [False]


async def test_a_node_that_comes_back_is_not_gone(api: TinyApi, watched: Watched) -> None:
    await api.delete(PATH, "b")
    await eventually(lambda: gone(watched.nodes, "b") == [True])
    await api.create(PATH, "b", spec={})
    await eventually(lambda: gone(watched.nodes, "b") == [False])


async def test_a_node_is_gone_only_if_a_live_read_says_so_too(
    api: TinyApi, proxy: FaultProxy, watched: Watched
) -> None:
    await api.delete(PATH, "b")
    await eventually(lambda: gone(watched.nodes, "b") == [True])
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=everything):
        assert not await watched.nodes.is_gone("b"), "who may not look does not know"
    assert await watched.nodes.is_gone("b")
    # It came back, and the watch has not said so.
    api.objects[f"{PATH}/b"] = {"metadata": {"name": "b"}}
    assert not await watched.nodes.is_gone("b")
    assert gone(watched.nodes, "b") == [False], "nobody need ask again"


async def test_the_age_of_the_watch_is_known_once_it_has_listed(client: ApiWriter, watched: Watched) -> None:
    unknown = Nodes(client, signs=signs(), on_change=watched.told.append, random=Random(1), now=lambda: NOW)
    assert unknown.age() is None, "reading nodes may be forbidden, and all goes on without"
    age = watched.nodes.age()
    assert age is not None
    assert 0.0 <= age < 60.0

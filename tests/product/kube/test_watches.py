"""Watches of several namespaces that are used as one."""

import asyncio
from functools import partial
from random import Random

import msgspec

from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.watches import Watches, watches
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.kube.watched import TIMES, Item, running


def of(client: ApiWriter, *namespaces: str) -> WatchCache[Item] | Watches[Item]:
    decode = msgspec.json.Decoder(Item).decode
    unheard = partial(WatchCache[Item], on_change=lambda _old, _new: None)
    return watches(partial(unheard, client, PODS, decode=decode, random=Random(1), times=TIMES), namespaces)


def known(found: WatchCache[Item] | Watches[Item]) -> set[str]:
    return {f"{one.metadata.namespace}/{one.metadata.name}" for one in found.store.values()}


async def test_exactly_these_namespaces_are_seen(api: TinyApi, client: ApiWriter) -> None:
    for namespace in "abc":
        await api.create(PODS.path(namespace), "train")
    found = of(client, "a", "b")
    async with running(found.run()):
        await asyncio.wait_for(found.synced.wait(), 30)
        assert known(found) == {"a/train", "b/train"}
        assert found.store.get("c", "train") is None
        await api.create(PODS.path("b"), "later")
        await eventually(lambda: "b/later" in known(found))
        written = found.store.get("b", "train")
        assert written is not None
        await api.delete(PODS.path("b"), "train")
        await eventually(lambda: known(found) == {"a/train", "b/later"})
        found.store.written(written)  # an answer that is older than what was seen
        gone = found.store.get("a", "train")
        assert gone is not None
        found.store.forget("a", "train", gone.metadata.uid)
        assert known(found) == {"b/later"}
        assert 0.0 <= found.age() < 60.0
        assert found.unreadable == 0


async def test_it_is_synced_once_each_namespace_is(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    await api.create(PODS.path("a"), "train")

    def of_b(request: Request) -> bool:
        return request.path == PODS.path("b")

    found, fault = of(client, "a", "b"), Answer(status=403, reason="Forbidden")
    with proxy.inject(fault, on=of_b):
        async with running(found.run()):
            await eventually(lambda: known(found) == {"a/train"} and proxy.count(of_b) > 0)
            assert not found.synced.is_set()
            proxy.withdraw(fault)
            await asyncio.wait_for(found.synced.wait(), 30)
    found.follow(PODS)
    assert not found.synced.is_set()


async def test_one_namespace_and_all_of_them_need_no_more_than_a_watch(client: ApiWriter) -> None:
    assert isinstance(of(client), WatchCache)
    assert isinstance(of(client, "a"), WatchCache)

"""Watches of several namespaces that are used as one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
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
from tests.product.kube.items import Item
from tests.product.kube.watched import TIMES


def of(client: ApiWriter, *namespaces: str) -> WatchCache[Item] | Watches[Item]:
    decode = msgspec.json.Decoder(Item).decode
    unheard = partial(WatchCache[Item], on_change=lambda _old, _new: None)
    return watches(partial(unheard, client, PODS, decode=decode, random=Random(1), times=TIMES), namespaces)


@asynccontextmanager
async def running(found: WatchCache[Item] | Watches[Item]) -> AsyncIterator[None]:
    task = asyncio.create_task(found.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def known(found: WatchCache[Item] | Watches[Item]) -> set[tuple[str, str]]:
    return {(one.metadata.namespace, one.metadata.name) for one in found.store.values()}


async def test_exactly_these_namespaces_are_seen(api: TinyApi, client: ApiWriter) -> None:
    for namespace in "abc":
        await api.create(PODS.path(namespace), "train")
    found = of(client, "a", "b")
    async with running(found):
        await asyncio.wait_for(found.synced.wait(), 30)
        assert known(found) == {("a", "train"), ("b", "train")}
        assert found.store.get("a", "train") is not None
        assert found.store.get("c", "train") is None
        await api.create(PODS.path("b"), "later")
        await eventually(lambda: ("b", "later") in known(found))
        gone = found.store.get("a", "train")
        assert gone is not None
        found.store.forget("a", "train", gone.metadata.uid)
        assert known(found) == {("b", "train"), ("b", "later")}
        assert 0.0 <= found.age() < 60.0
        assert found.unreadable == 0


async def test_an_answer_to_our_own_write_is_older_than_what_the_watch_of_its_namespace_saw(
    api: TinyApi, client: ApiWriter
) -> None:
    await api.create(PODS.path("a"), "train")
    found = of(client, "a", "b")
    async with running(found):
        await asyncio.wait_for(found.synced.wait(), 30)
        written = found.store.get("a", "train")
        assert written is not None
        await api.delete(PODS.path("a"), "train")
        await eventually(lambda: known(found) == set())
        found.store.written(written)
        assert known(found) == set()


async def test_it_is_synced_once_each_namespace_is(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    await api.create(PODS.path("a"), "train")

    def of_b(request: Request) -> bool:
        return request.path == PODS.path("b")

    found = of(client, "a", "b")
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=of_b):
        async with running(found):
            await eventually(lambda: known(found) == {("a", "train")} and proxy.count(of_b) > 0)
            assert not found.synced.is_set()
            proxy.withdraw(next(iter(proxy._rules)).fault)
            await asyncio.wait_for(found.synced.wait(), 30)
    found.follow(PODS)
    assert not found.synced.is_set()


async def test_one_namespace_and_all_of_them_need_no_more_than_a_watch(client: ApiWriter) -> None:
    assert isinstance(of(client), WatchCache)
    assert isinstance(of(client, "a"), WatchCache)

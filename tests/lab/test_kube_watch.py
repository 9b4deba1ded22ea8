"""The watch cache against the real API server: what the tiny one in memory promises is true of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.kube.watch import WatchCache, WatchTimes
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.faults.faults import EventError, Freeze, Reset, lists, watches
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

# A watch that a busy machine opens late, or on which nothing comes for a while, must not end.
TIMES = WatchTimes(silence=60, opening=5, retry=Backoff(first=0.02, longest=0.2), page=2)
LABEL = {"kept": "yes"}


class Config(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


class World:
    """A namespace of ConfigMaps with a label, and a cache of them behind a proxy."""

    def __init__(
        self, admin: ApiWriter, proxy: FaultProxy, cache: WatchCache[Config], namespace: str
    ) -> None:
        self.admin = admin
        self.proxy = proxy
        self.cache = cache
        self.path = CONFIG_MAPS.path(namespace)

    async def create(self, name: str) -> None:
        await self.admin.create_object(
            self.path, body={"metadata": {"name": name, "labels": LABEL}}
        )

    async def patch(self, name: str, body: object) -> Config:
        answer = await self.admin.patch_object(
            f"{self.path}/{name}", body=body, content_type=MERGE_PATCH
        )
        return msgspec.json.decode(answer, type=Config)

    async def settles_with(self, *names: str) -> None:
        await eventually(
            lambda: sorted(one.metadata.name for one in self.cache.store.values()) == sorted(names)
        )


@pytest.fixture
async def world(cluster: Cluster, namespace: str) -> AsyncIterator[World]:
    async with (
        FaultProxy(cluster.kubeconfig) as proxy,
        await connect(user_agent="admin", kubeconfig=cluster.kubeconfig) as admin,
        await connect(user_agent="test", kubeconfig=proxy.kubeconfig) as client,
    ):
        cache: WatchCache[Config] = WatchCache(
            client,
            CONFIG_MAPS,
            namespace=namespace,
            label_selector="kept=yes",
            decode=msgspec.json.Decoder(Config).decode,
            on_change=lambda *_: None,
            random=Random(1),
            times=TIMES,
        )
        world = World(admin, proxy, cache, namespace)
        for name in "abcde":
            await world.create(name)
        running = asyncio.create_task(cache.run())
        await eventually(cache.synced.is_set)
        yield world
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_pages_events_labels_and_deletions_are_followed(world: World) -> None:
    assert sorted(one.metadata.name for one in world.cache.store.values()) == list("abcde")
    assert world.proxy.count(lists) == 3
    await world.create("f")
    await world.admin.delete_object(f"{world.path}/a")
    await world.patch("b", {"metadata": {"labels": {"kept": None}}})
    await world.settles_with("c", "d", "e", "f")
    written = await world.patch("c", {"data": {"x": "1"}})
    world.cache.store.written(written)
    assert world.cache.store.get(written.metadata.namespace, "c") == written
    assert world.proxy.count(watches) == 1


async def test_what_happened_during_trouble_is_made_up_for(world: World) -> None:
    with (
        world.proxy.inject(Freeze(), on=watches, times=1),
        world.proxy.inject(Reset(), on=watches, times=3),
    ):
        world.proxy.cut()
        await world.create("f")
        await world.settles_with(*"abcdef")
    assert world.proxy.count(lists) == 3
    with world.proxy.inject(EventError(status=410, reason="Expired"), on=watches, times=1):
        await world.admin.delete_object(f"{world.path}/a")
        await world.create("g")
        await world.settles_with(*"bcdefg")
    assert world.proxy.count(lists) > 3

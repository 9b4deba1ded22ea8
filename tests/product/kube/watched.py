"""A kind of two fields, and a running watch cache of it with every change that it told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.watch import WatchCache, WatchTimes
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.waiting import PATIENCE

PATH = PODS.path("n")
RETRY = Backoff(first=0.02, longest=0.08)
TIMES = WatchTimes(silence=60, opening=60, healthy=0.1, list_timeout=60, retry=RETRY, page=2)


class Item(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    value: int = 0


def item(name: str, revision: int, *, uid: str = "u", value: int = 0) -> Item:
    meta = ObjectMeta(namespace="n", name=name, uid=uid, resource_version=str(revision))
    return Item(metadata=meta, value=value)


def state(items: Iterable[Item]) -> dict[str, tuple[str, str]]:
    """Name to uid and version, which is all that two equal caches must agree on."""
    return {one.metadata.name: (one.metadata.uid, one.metadata.resource_version) for one in items}


Change = Callable[[Item | None, Item | None], None]


class Watched:
    """A cache and every change that it told."""

    def __init__(
        self,
        client: ApiWriter,
        times: WatchTimes = TIMES,
        *,
        seed: int = 1,
        on_change: Change | None = None,
    ) -> None:
        self.changes: list[tuple[Item | None, Item | None]] = []
        self.cache: WatchCache[Item] = WatchCache(
            client,
            PODS,
            namespace="n",
            decode=msgspec.json.Decoder(Item).decode,
            on_change=on_change or (lambda old, new: self.changes.append((old, new))),
            random=Random(seed),
            times=times,
        )

    def agrees_with(self, api: TinyApi) -> bool:
        return state(self.cache.store.values()) == state(
            msgspec.convert(one, Item) for one in api.objects.values()
        )

    @property
    def last(self) -> tuple[Item | None, Item | None]:
        return self.changes[-1]

    def get(self, name: str) -> Item | None:
        return self.cache.store.get("n", name)


@asynccontextmanager
async def running(runs: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(runs)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def watching(client: ApiWriter, times: WatchTimes = TIMES) -> AsyncIterator[Watched]:
    """A cache that runs and has synced."""
    watched = Watched(client, times)
    async with running(watched.cache.run()):
        await asyncio.wait_for(watched.cache.synced.wait(), PATIENCE)
        yield watched


async def fill(api: TinyApi, *names: str) -> None:
    for name in names:
        await api.create(PATH, name)

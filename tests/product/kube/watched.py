"""A running watch cache and every change that it told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import msgspec

from mpijob_elastic.kube.backoff import Backoff
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.watch import WatchCache, WatchTimes
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.product.kube.items import Item, state

PATH = PODS.path("n")
RETRY = Backoff(first=0.02, longest=0.08)
TIMES = WatchTimes(silence=0.5, opening=0.5, healthy=0.1, list_timeout=1, retry=RETRY, page=2)


class Watched:
    """A cache and every change that it told."""

    def __init__(self, client: ApiWriter, times: WatchTimes = TIMES) -> None:
        self.changes: list[tuple[Item | None, Item | None]] = []
        self.cache: WatchCache[Item] = WatchCache(
            client,
            PODS,
            namespace="n",
            decode=msgspec.json.Decoder(Item).decode,
            on_change=lambda old, new: self.changes.append((old, new)),
            random=Random(1),
            times=times,
        )

    def agrees_with(self, api: TinyApi) -> bool:
        there = (msgspec.convert(one, Item) for one in api.objects.values())
        return state(self.cache.store.values()) == state(there)


@asynccontextmanager
async def watching(client: ApiWriter, times: WatchTimes = TIMES) -> AsyncIterator[Watched]:
    """A cache that runs and has synced."""
    watched = Watched(client, times)
    task = asyncio.create_task(watched.cache.run())
    try:
        await asyncio.wait_for(watched.cache.synced.wait(), 30)
        yield watched
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def fill(api: TinyApi, *names: str) -> None:
    for name in names:
        await api.create(PATH, name)

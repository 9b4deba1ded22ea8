"""Follow one job live: a snapshot after each change, through the same watch caches as the controller's."""

import asyncio
from collections.abc import AsyncGenerator
from random import Random
from typing import TypeVar

from mpijob_elastic.cli.jobs.selection import Selection, Source
from mpijob_elastic.cli.jobs.snapshot import Objects, Snapshot
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.watch import WatchCache

T = TypeVar("T", bound=KubeObject)
# Seconds that the streams may take to end: the job has been shown, so nobody should wait for them.
CLOSING = 2.0


class JobWatch:
    """The caches of one job. with_role: this user may read Roles."""

    def __init__(self, client: ApiReader, selection: Selection, *, with_role: bool, random: Random) -> None:
        self._client = client
        self._namespace = selection.namespace
        self._random = random
        self._changed = asyncio.Event()
        self._jobs = self._cache(selection.jobs)
        self._pods = self._cache(selection.pods)
        self._configs = self._cache(selection.configs)
        self._roles = self._cache(selection.roles) if with_role else None

    async def snapshots(self) -> AsyncGenerator[Snapshot | None]:
        """Yield the job now and after each change, None while it does not exist. Endless, so close it."""
        caches = [cache for cache in (self._jobs, self._pods, self._configs, self._roles) if cache]
        watching = [asyncio.create_task(cache.run()) for cache in caches]
        try:
            await asyncio.gather(*(cache.synced.wait() for cache in caches))
            while True:
                self._changed.clear()
                yield self._snapshot()
                await self._changed.wait()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching, timeout=CLOSING)

    def _cache(self, source: Source[T]) -> WatchCache[T]:
        return WatchCache(
            self._client,
            source.resource,
            decode=source.read,
            on_change=lambda _old, _new: self._changed.set(),
            random=self._random,
            namespace=self._namespace,
            label_selector=source.label,
            field_selector=source.field,
        )

    def _snapshot(self) -> Snapshot | None:
        roles = self._roles.store.values() if self._roles else None
        objects = Objects(
            jobs=self._jobs.store.values(),
            pods=self._pods.store.values(),
            configs=self._configs.store.values(),
            roles=roles,
        )
        return next(iter(objects.snapshots()), None)

"""One job followed live: a snapshot after each change, through the same watch caches as the controller's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import TypeVar

from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.cli.jobs.selection import Selection, Selectors
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.cli.jobs.snapshot import Objects, Snapshot
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.observe import facts_config
from mpijob_elastic.observe.facts_config import ConfigFacts, RoleFacts

T = TypeVar("T", bound=KubeObject)
# Seconds that the streams may take to end: what was asked for has been shown, so nobody should wait for them.
CLOSING = 2.0
Cache = WatchCache[SeenJob] | WatchCache[SeenPod] | WatchCache[ConfigFacts] | WatchCache[RoleFacts]


class JobWatch:
    """The caches of one job. with_role: whether this user may read Roles."""

    def __init__(self, client: ApiReader, selection: Selection, *, with_role: bool, random: Random) -> None:
        self._client = client
        self._namespace = selection.namespace
        self._random = random
        self._changed = asyncio.Event()
        self._jobs: WatchCache[SeenJob] = self._cache(resources.MPI_JOBS, selection.jobs, shown_facts.read_job)
        self._pods: WatchCache[SeenPod] = self._cache(resources.PODS, selection.pods, shown_facts.read_pod)
        self._configs: WatchCache[ConfigFacts] = self._cache(
            resources.CONFIG_MAPS, selection.configs, facts_config.read_config
        )
        self._roles: WatchCache[RoleFacts] | None = (
            self._cache(resources.ROLES, selection.roles, facts_config.read_role) if with_role else None
        )

    async def snapshots(self) -> AsyncGenerator[Snapshot | None]:
        """The job now and after each change, None while it does not exist; for ever, so close it."""
        caches: list[Cache] = [self._jobs, self._pods, self._configs, *([self._roles] if self._roles else [])]
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

    def _cache(self, resource: Resource, selectors: Selectors, decode: Callable[[bytes], T]) -> WatchCache[T]:
        return WatchCache(
            self._client,
            resource,
            decode=decode,
            on_change=lambda _old, _new: self._changed.set(),
            random=self._random,
            namespace=self._namespace,
            label_selector=selectors.label,
            field_selector=selectors.field,
        )

    def _snapshot(self) -> Snapshot | None:
        roles = self._roles.values() if self._roles else None
        objects = Objects(
            jobs=self._jobs.values(), pods=self._pods.values(), configs=self._configs.values(), roles=roles
        )
        return next(iter(objects.snapshots()), None)

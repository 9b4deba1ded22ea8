"""Follow one job live: a snapshot after each change, through the same watch caches as the controller's."""

import asyncio
from collections.abc import AsyncGenerator
from random import Random
from typing import TypeVar

from mpijob_elastic.cli.jobs.fetch import Selection, Source
from mpijob_elastic.cli.jobs.snapshot import Snapshot, snapshots
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.watch import WatchCache

T = TypeVar("T", bound=KubeObject)
# Seconds that the streams may take to end: the job has been shown, so nobody should wait for them.
CLOSING = 2.0


async def follow(
    client: ApiReader, selection: Selection, *, with_role: bool, random: Random
) -> AsyncGenerator[Snapshot | None]:
    """Yield the selected job now and after each change, None while it does not exist. Endless, so close it.

    with_role: this user may read Roles.
    """
    changed = asyncio.Event()

    def watch(source: Source[T]) -> WatchCache[T]:
        return WatchCache(
            client,
            source.resource,
            decode=source.read,
            on_change=lambda _old, _new: changed.set(),
            random=random,
            namespace=selection.namespace,
            label_selector=source.label,
            field_selector=source.field,
        )

    jobs, pods, configs = watch(selection.jobs), watch(selection.pods), watch(selection.configs)
    roles = watch(selection.roles) if with_role else None
    caches = [cache for cache in (jobs, pods, configs, roles) if cache]
    watching = [asyncio.create_task(cache.run()) for cache in caches]
    try:
        await asyncio.gather(*(cache.synced.wait() for cache in caches))
        while True:
            changed.clear()
            found = snapshots(
                jobs=jobs.store.values(),
                pods=pods.store.values(),
                configs=configs.store.values(),
                roles=roles.store.values() if roles else None,
            )
            yield found[0] if found else None
            await changed.wait()
    finally:
        for task in watching:
            task.cancel()
        await asyncio.wait(watching, timeout=CLOSING)

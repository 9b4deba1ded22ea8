"""Watches of one resource in several namespaces, used as one; an account may have rights in these alone."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.watch import WatchCache

T = TypeVar("T", bound=KubeObject)


def watches(make: Callable[..., WatchCache[T]], namespaces: Sequence[str]) -> "WatchCache[T] | Watches[T]":
    """Return what `make(namespace=...)` makes for these namespaces; none: for all of them."""
    found = {namespace: make(namespace=namespace) for namespace in namespaces}
    return Watches(found) if len(found) > 1 else next(iter(found.values()), None) or make()


class Watches(Generic[T]):
    """The caches of several namespaces as one `WatchCache` with one `Store`; synced once each has listed."""

    def __init__(self, caches: Mapping[str, WatchCache[T]]) -> None:
        self.synced = asyncio.Event()
        self.store = self
        self._caches = caches.values()
        self._stores = {namespace: cache.store for namespace, cache in caches.items()}

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object as last seen."""
        return self._stores[namespace].get(namespace, name) if namespace in self._stores else None

    def values(self) -> Collection[T]:
        """Return every object as last seen."""
        return [found for store in self._stores.values() for found in store.values()]

    def written(self, new: T) -> None:
        """Store the answer to our own write."""
        self._stores[new.metadata.namespace].written(new)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Remove an object that is gone."""
        self._stores[namespace].forget(namespace, name, uid)

    @property
    def unreadable(self) -> int:
        """The number of objects that exist and cannot be read."""
        return sum(cache.unreadable for cache in self._caches)

    def age(self) -> float:
        """Return the seconds since the last proof that news arrives from each."""
        return max(cache.age() for cache in self._caches)

    def restart(self) -> None:
        """Have the next run list everything again; not synced until then."""
        self.synced.clear()
        for cache in self._caches:
            cache.restart()

    async def run(self) -> None:
        """List and watch for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            for cache in self._caches:
                group.create_task(cache.run())
            for cache in self._caches:
                await cache.synced.wait()
            self.synced.set()

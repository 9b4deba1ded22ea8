"""What the webhook sees of the cluster: MPIJobs, quotas, and what capabilities look up.

A replica that cannot watch still answers reviews.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from mpijob_elastic import capabilities
from mpijob_elastic.admission import budgets, parking, size
from mpijob_elastic.admission.interface import LookedUp, Lookup
from mpijob_elastic.admission.size import QuotaFacts
from mpijob_elastic.capabilities import admission
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, RESOURCE_QUOTAS, Resource
from mpijob_elastic.kube.served import Served, WhileServed
from mpijob_elastic.kube.watch import WatchCache, Watches, watches
from mpijob_elastic.model.job_facts import JobFacts

T = TypeVar("T", bound=KubeObject)


class Watched(Lookup):
    """MPIJobs, quotas and the objects that capabilities look up, of some namespaces or all.

    There are none until the first list is complete.
    """

    def __init__(self, client: ApiReader, *, namespaces: Sequence[str], random: Random) -> None:
        def watching(resource: Resource, read: Callable[[bytes], T]) -> WatchCache[T] | Watches[T]:
            return watches(
                partial(WatchCache[T], client, resource, decode=read, random=random), namespaces
            )

        self._jobs = watching(MPI_JOBS, capabilities.read)
        self._quotas = watching(RESOURCE_QUOTAS, size.read_quota)
        self._within = {
            resource: watching(resource, read)
            for watched in (budgets.WATCHES, parking.WATCHES)
            for resource, read in watched.items()
        }
        self._named = {
            each.resource: _while_served(client, each, namespaces=namespaces, random=random)
            for each in admission.WATCHES
        }
        self._served = {resource: Served(client, resource) for resource in admission.SERVED}

    def job(self, namespace: str, name: str) -> JobFacts | None:
        """Return the job as last seen; None if it is not known (yet)."""
        return self._jobs.store.get(namespace, name)

    def quotas(self, namespace: str) -> list[QuotaFacts]:
        """Return the ResourceQuotas of a namespace, as last seen."""
        return [
            found for found in self._quotas.store.values() if found.metadata.namespace == namespace
        ]

    def serves(self, resource: Resource) -> bool:
        """Tell whether the API serves a resource. Raises LookupError while that is not known."""
        known = self._served[resource].known
        if known is None:
            raise LookupError
        return known

    def named(self, resource: Resource, name: str, namespace: str = "") -> KubeObject | None:
        """Return the object of that name, None if there is none; "": it is cluster-wide.

        Raises LookupError while they cannot be read.
        """
        watched = self._named[resource]
        if not watched.known:
            raise LookupError
        found: KubeObject | None = watched.cache.store.get(namespace, name)
        return found

    def within(self, resource: Resource, namespace: str) -> list[KubeObject]:
        """Return the objects of a namespace. Raises LookupError while they cannot be read."""
        found = self._within[resource]
        if not found.synced.is_set():
            raise LookupError
        return [each for each in found.store.values() if each.metadata.namespace == namespace]

    def unreadable(self) -> int:
        """Return the number of jobs that cannot be read."""
        return self._jobs.unreadable

    async def run(self) -> None:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            for cache in (self._jobs, self._quotas, *self._within.values(), *self._named.values()):
                group.create_task(cache.run())
            for asked in self._served.values():
                group.create_task(asked.run())


def _while_served(
    client: ApiReader, looked_up: LookedUp, *, namespaces: Sequence[str], random: Random
) -> WhileServed:
    """Return the watch of what a capability looks up; `namespaces`: those that are covered."""
    selector = f"metadata.name={looked_up.name}" if looked_up.name else None
    make = partial(
        WatchCache[KubeObject],
        client,
        looked_up.resource,
        decode=looked_up.read,
        random=random,
        field_selector=selector,
    )
    covered = namespaces if looked_up.is_namespaced else ()
    return WhileServed(client, looked_up.resource, watches(make, covered))

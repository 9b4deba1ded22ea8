"""What the webhook sees of the cluster: MPIJobs, quotas, and what capabilities look up.

A replica that cannot watch still answers reviews.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities import admission
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, RESOURCE_QUOTAS, Resource
from mpijob_elastic.kube.served import WhileServed
from mpijob_elastic.kube.watch import WatchCache, watches
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import quota
from webhook.rules.quota import QuotaFacts


class Watched:
    """MPIJobs and quotas, of these namespaces or all; empty until the first list is complete."""

    def __init__(self, client: ApiReader, *, namespaces: Sequence[str], random: Random) -> None:
        jobs = partial(WatchCache[JobFacts], client, MPI_JOBS, decode=capabilities.read, random=random)
        self._jobs = watches(jobs, namespaces)
        quotas = partial(WatchCache[QuotaFacts], client, RESOURCE_QUOTAS, decode=quota.read, random=random)
        self._quotas = watches(quotas, namespaces)
        looked_up = {resource: read for one in admission.ALL for resource, read in one.watches.items()}
        self._others = {
            resource: WatchCache(client, resource, decode=read, random=random) for resource, read in looked_up.items()
        }
        self._within = {
            resource: watches(partial(WatchCache[KubeObject], client, resource, decode=read, random=random), namespaces)
            for one in admission.ALL
            for resource, read in one.watches_within.items()
        }
        self._served = {resource: WhileServed(client, resource, cache) for resource, cache in self._others.items()}

    def job(self, namespace: str, name: str) -> JobFacts | None:
        """Return the job as last seen; None if it is not known (yet)."""
        return self._jobs.store.get(namespace, name)

    def quotas(self, namespace: str) -> list[QuotaFacts]:
        """Return the ResourceQuotas of a namespace, as last seen."""
        return [found for found in self._quotas.store.values() if found.metadata.namespace == namespace]

    def named(self, resource: Resource, name: str) -> KubeObject | None:
        """Return a cluster-wide object, None if there is none. Raises LookupError while they cannot be read."""
        if not self._served[resource].known:
            raise LookupError
        return self._others[resource].store.get("", name)

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
            for cache in (self._jobs, self._quotas, *self._within.values(), *self._served.values()):
                group.create_task(cache.run())

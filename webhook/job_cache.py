"""What the webhook sees of the cluster: MPIJobs, quotas, Volcano's queues, the API server's version.

A replica that cannot watch still answers reviews.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from mpijob_elastic import capabilities
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, QUEUES, RESOURCE_QUOTAS
from mpijob_elastic.kube.served import WhileServed
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.watches import watches
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import gang, quota
from webhook.rules.gang import QueueFacts
from webhook.rules.quota import QuotaFacts


class Watched:
    """MPIJobs and quotas, of these namespaces or all; empty until the first list is complete."""

    def __init__(self, client: ApiReader, *, namespaces: Sequence[str], random: Random) -> None:
        jobs = partial(WatchCache[JobFacts], client, MPI_JOBS, decode=capabilities.read, random=random)
        self._jobs = watches(jobs, namespaces)
        quotas = partial(WatchCache[QuotaFacts], client, RESOURCE_QUOTAS, decode=quota.read, random=random)
        self._quotas = watches(quotas, namespaces)
        self._queues: WatchCache[QueueFacts] = WatchCache(client, QUEUES, decode=gang.read_queue, random=random)
        self._queues_served = WhileServed(client, QUEUES, self._queues)

    def job(self, namespace: str, name: str) -> JobFacts | None:
        """Return the job as last seen; None if it is not known (yet)."""
        return self._jobs.store.get(namespace, name)

    def quotas(self, namespace: str) -> list[QuotaFacts]:
        """Return the ResourceQuotas of a namespace, as last seen."""
        return [found for found in self._quotas.store.values() if found.metadata.namespace == namespace]

    def queue(self, name: str) -> str | None:
        """Return the state of a queue, None if there is none. Raises LookupError while queues cannot be read."""
        if not self._queues_served.known:
            raise LookupError
        found = self._queues.store.get("", name)
        return found.state if found else None

    def unreadable(self) -> int:
        """Return the number of jobs that cannot be read."""
        return self._jobs.unreadable

    async def run(self) -> None:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            for cache in (self._jobs, self._quotas, self._queues_served):
                group.create_task(cache.run())

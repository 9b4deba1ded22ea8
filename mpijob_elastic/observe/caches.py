"""The four watch caches, and which job each object belongs to.

A change of any object only puts its job's key into the queue (kube.queue), so many changes are one look. Pods and
ConfigMaps are watched by label, since nothing else in a cluster concerns us; the operator's ConfigMaps and Roles carry
`app: JOB` and nothing better.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.client import Client
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.job import JobView, Ref
from mpijob_elastic.observe import facts_config, facts_job, facts_pod, views
from mpijob_elastic.observe.facts_config import ConfigFacts, RoleFacts
from mpijob_elastic.observe.facts_job import JobFacts
from mpijob_elastic.observe.facts_pod import PodFacts
from mpijob_elastic.observe.owners import Owned


@dataclass(frozen=True, order=True)
class JobKey:
    """Which job: what the queue holds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Fact(Protocol):
    @property
    def metadata(self) -> Owned: ...


class Caches:
    """Everything that is watched; `enqueue` is called with the key of each job that something happened to."""

    def __init__(
        self, client: Client, *, namespace: str | None, enqueue: Callable[[JobKey], None], random: Random
    ) -> None:
        self._enqueue = enqueue
        self._pods_of: dict[JobKey, dict[str, PodFacts]] = defaultdict(dict)
        self._keeps_selector = False
        self.jobs: WatchCache[JobFacts] = WatchCache(
            client,
            resources.MPI_JOBS,
            decode=facts_job.read,
            on_change=self._on_job,
            random=random,
            namespace=namespace,
        )
        self.pods: WatchCache[PodFacts] = WatchCache(
            client,
            resources.PODS,
            decode=facts_pod.read,
            on_change=self._on_pod,
            random=random,
            namespace=namespace,
            label_selector=names.POD_SELECTOR,
        )
        self.configs: WatchCache[ConfigFacts] = WatchCache(
            client,
            resources.CONFIG_MAPS,
            decode=facts_config.read_config,
            on_change=self._on_owned,
            random=random,
            namespace=namespace,
            label_selector=names.LABEL_APP,
        )
        self.roles: WatchCache[RoleFacts] = WatchCache(
            client,
            resources.ROLES,
            decode=facts_config.read_role,
            on_change=self._on_owned,
            random=random,
            namespace=namespace,
            label_selector=names.LABEL_APP,
        )

    async def run(self) -> None:
        """Follow all four for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            for cache in (self.jobs, self.pods, self.configs, self.roles):
                group.create_task(cache.run())

    async def synced(self) -> None:
        """Wait until each has been listed once."""
        for cache in (self.jobs, self.pods, self.configs, self.roles):
            await cache.synced.wait()

    def is_synced(self) -> bool:
        """Whether each has been listed once."""
        return all(cache.synced.is_set() for cache in (self.jobs, self.pods, self.configs, self.roles))

    def ages(self) -> dict[str, float]:
        """Seconds since the last sign of life, by resource."""
        return {
            "mpijobs": self.jobs.age(),
            "pods": self.pods.age(),
            "configmaps": self.configs.age(),
            "roles": self.roles.age(),
        }

    def job_keys(self) -> Iterable[JobKey]:
        """Every job there is."""
        return [JobKey(job.metadata.namespace, job.metadata.name) for job in self.jobs.values()]

    def view(self, key: JobKey, *, probes: views.Probes) -> JobView | None:
        """The job as last seen, None where it is gone."""
        job = self.jobs.get(key.namespace, key.name)
        if job is None:
            return None
        return views.view(
            job,
            pods=self._pods_of.get(key, {}).values(),
            config=self.configs.get(key.namespace, names.config_map(key.name)),
            role=self.roles.get(key.namespace, names.launcher(key.name)),
            probes=probes,
            keeps_selector=self._keeps_selector,
        )

    def see_definition(self, *, keeps_selector: bool) -> None:
        """Take in what the MPIJob definition says; a change concerns every job."""
        if keeps_selector != self._keeps_selector:
            self._keeps_selector = keeps_selector
            for key in self.job_keys():
                self._enqueue(key)

    def see(self, resource: resources.Resource, raw: bytes) -> None:
        """Take in an object as the API server answered it to our own write."""
        match resource:
            case resources.PODS:
                self.pods.observe_write(facts_pod.read(raw))
            case resources.MPI_JOBS:
                self.jobs.observe_write(facts_job.read(raw))
            case resources.CONFIG_MAPS:
                self.configs.observe_write(facts_config.read_config(raw))
            case resources.ROLES:
                self.roles.observe_write(facts_config.read_role(raw))

    def see_pod_gone(self, namespace: str, ref: Ref) -> None:
        """Take in that a pod does not exist any more."""
        self.pods.forget(namespace, ref.name, ref.uid)

    def _on_job(self, old: JobFacts | None, new: JobFacts | None) -> None:
        fact = new or old
        if fact is not None:
            self._enqueue(JobKey(fact.metadata.namespace, fact.metadata.name))

    def _on_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        if old is not None and (key := _key(old)):
            self._pods_of[key].pop(old.metadata.name, None)
            if not self._pods_of[key]:
                del self._pods_of[key]
        if new is not None and (key := _key(new)):
            self._pods_of[key][new.metadata.name] = new
        self._on_owned(old, new)

    def _on_owned(self, old: _Fact | None, new: _Fact | None) -> None:
        for key in {_key(fact) for fact in (old, new) if fact is not None}:
            if key is not None:
                self._enqueue(key)


def _key(fact: _Fact) -> JobKey | None:
    return JobKey(fact.metadata.namespace, fact.metadata.job) if fact.metadata.job else None

"""The watch caches of MPIJobs, pods, ConfigMaps, Roles, nodes, and what capabilities watch.

A change of an object puts its job's key into the queue (kube.queue), so many changes lead to one
look. A change of an MPIJob or a pod in fields that we do not read wakes nothing. Labels select the
watched objects; the operator's ConfigMaps and Roles carry only `app: JOB`. Nodes are watched only
if that is possible.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Never, TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.meta import Identity, KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.served import ServerVersion, WhileServed
from mpijob_elastic.kube.watch import WatchCache, Watches, watches
from mpijob_elastic.model import bounds
from mpijob_elastic.model.job import ConfigFacts, JobView, Role
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Fact, is_news
from mpijob_elastic.model.node import Signs
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import facts_config, registration, views
from mpijob_elastic.observe.facts_config import Packed, packed
from mpijob_elastic.observe.nodes import Nodes
from mpijob_elastic.observe.shared_texts import PodTexts
from mpijob_elastic.observe.unreadable import Unread
from mpijob_elastic.observe.watching import ByJob, JobKey, See, Watching, unseen
from mpijob_elastic.observe.worker_ends import WorkerEnds

log = logging.getLogger(__name__)

# Seconds between two reads of the MPIJob definition: it changes only with an upgrade, and a minute
# is soon enough then.
DEFINITION_EVERY = 60.0
T = TypeVar("T", bound=KubeObject)
F = TypeVar("F", bound=Fact)
C = TypeVar("C", ConfigFacts, Role)


class Caches:
    """The caches.

    namespaces: those to watch; empty for all. enqueue: called with the key of each job whose
    objects changed. read: how JSON is read. capabilities: tells the caches what to watch, and
    returns the function that adds to a view what each capability knows. signs: the signs that a
    node is about to go; None if nodes are not watched. now: returns seconds since the epoch.
    """

    def __init__(
        self,
        client: ApiReader,
        *,
        namespaces: Sequence[str],
        enqueue: Callable[[JobKey], None],
        random: Random,
        read: views.Read,
        capabilities: Callable[[Watching], See] = lambda _: unseen,
        signs: Signs | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._enqueue = enqueue
        self._pods_of: dict[JobKey, dict[str, PodFacts]] = defaultdict(dict)
        self._unplaced_of: dict[JobKey, dict[str, PodFacts]] = defaultdict(dict)
        self._unread = Unread(enqueue)
        self._ends = WorkerEnds(now)
        self._texts = PodTexts()
        self._keeps_selector = False
        # The cache of each watched resource, and how its JSON is read.
        self._watched: dict[
            Resource, tuple[WatchCache[Any] | Watches[Any], Callable[[bytes], Any]]
        ] = {}
        self._client = client
        self._namespaces = namespaces
        self._random = random
        self._by_job: list[ByJob[Any]] = []
        self.server = ServerVersion(client, on_change=self._wake_all)

        owned = names.LABEL_APP
        self.jobs = self._watch(resources.MPI_JOBS, read.job, self._on_job)
        self.pods = self._watch(
            resources.PODS,
            lambda raw: self._texts.shared(read.pod(raw)),
            self._on_pod,
            names.POD_SELECTOR,
        )
        read_config, read_role = facts_config.read_config, facts_config.read_role
        self.configs = self._watch(
            resources.CONFIG_MAPS, lambda raw: packed(read_config(raw)), self._on_owned, owned
        )
        self.roles = self._watch(
            resources.ROLES, lambda raw: packed(read_role(raw)), self._on_owned, owned
        )
        # Capabilities add other resources, which the cluster may not serve.
        self._required = {resource.plural: cache for resource, (cache, _) in self._watched.items()}
        self._see_capabilities = capabilities(self)
        self._nodes = (
            Nodes(client, signs=signs, on_change=self._on_node, random=random, now=now)
            if signs
            else None
        )

    async def run(self) -> None:
        """Watch for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            served = (found.served for found in self._by_job)
            for cache in (
                *self._required.values(),
                *served,
                self.server,
                *([self._nodes] if self._nodes else ()),
            ):
                group.create_task(cache.run())

    async def synced(self) -> None:
        """Wait until each cache has listed its objects once."""
        for cache in self._required.values():
            await cache.synced.wait()
        if self._nodes:
            await self._nodes.synced()

    def is_synced(self) -> bool:
        """Return True once each cache has listed its objects."""
        return all(cache.synced.is_set() for cache in self._required.values())

    def ages(self) -> dict[str, float]:
        """Return the seconds since the last sign of life, by resource.

        A resource that is not required counts only once it was listed.
        """
        ages = {resource: cache.age() for resource, cache in self._required.items()}
        served = (found.served for found in self._by_job)
        ages |= {one.resource.plural: one.cache.age() for one in served if one.known}
        of_nodes = self._nodes.age() if self._nodes else None
        return ages if of_nodes is None else ages | {"nodes": of_nodes}

    def unreadable(self) -> dict[str, int]:
        """Return the number of objects that cannot be read, by resource."""
        return {resource: cache.unreadable for resource, cache in self._required.items()}

    def job_keys(self) -> Iterable[JobKey]:
        """Return the keys of all jobs, and of the jobs that objects of capabilities belong to."""
        jobs = (
            JobKey(job.metadata.namespace, job.metadata.name) for job in self.jobs.store.values()
        )
        return {*jobs}.union(*(found.index for found in self._by_job))

    def view(
        self,
        key: JobKey,
        *,
        probes: views.Probes,
        holds: views.Holds = views.never_looked,
        acknowledged: views.Acknowledged = views.never_acknowledged,
    ) -> JobView | None:
        """Return the job as last seen; None if it is gone."""
        job = self.jobs.store.get(key.namespace, key.name)
        if job is None:
            return None
        seen = views.view(
            job,
            pods=self.judge(self._pods_of.get(key, {}).values()),
            config=_opened(self.configs.store.get(key.namespace, names.config_map(key.name)), job),
            role=_opened(self.roles.store.get(key.namespace, names.launcher(key.name)), job),
            probes=self._ends.over(key, probes),
            holds=holds,
            acknowledged=acknowledged,
            keeps_selector=self._keeps_selector,
        )
        if unread := self._unread.of(key, uid=job.metadata.uid):
            hidden = self._unread.pods(key, uid=job.metadata.uid)
            seen = replace(seen, unread=unread, hidden=hidden)
        return self.told(seen)

    def told(self, view: JobView) -> JobView:
        """Return the view with what each capability knows of the job now."""
        return self._see_capabilities(JobKey(view.namespace, view.name), view)

    def left_behind(self, key: JobKey) -> list[PodFacts]:
        """Return the workers that are being deleted but still run, of a job that is over.

        Such a job is gone, is being deleted, or has finished.
        """
        pods = self._pods_of.get(key, {}).values()
        deleted = [
            pod
            for pod in pods
            if pod.deleting and pod.phase == "Running" and pod.role == names.ROLE_WORKER
        ]
        if not deleted:
            return deleted
        job = self.jobs.store.get(key.namespace, key.name)
        # Whatever the status says, a job whose launcher runs has not finished.
        has_driver = any(
            pod.role == names.ROLE_LAUNCHER and pod.phase == "Running" and not pod.deleting
            for pod in pods
        )
        trains = (
            job.metadata.uid
            if job and not job.deleting and (has_driver or not job.finished)
            else None
        )
        return [pod for pod in deleted if pod.metadata.job_uid != trains]

    def by_job(
        self, resource: Resource, read: Callable[[bytes], F], *, selector: str | None = None
    ) -> ByJob[F]:
        """Watch a resource while it is served, and wake the job of each object that changes."""
        index: dict[JobKey, dict[str, F]] = defaultdict(dict)
        cache = self._watch(
            resource, lambda raw: bounds.kept(read(raw)), partial(self._on_indexed, index), selector
        )
        found = ByJob(
            served=WhileServed(self._client, resource, cache, on_change=self._wake_all), index=index
        )
        self._by_job.append(found)
        return found

    def is_served(self, resource: Resource) -> bool | None:
        """Tell whether a resource of `by_job` is served; None while that is not known."""
        return next((one.known for one in self._by_job if one.served.resource == resource), None)

    def of_job(self, resource: Resource, namespace: str, name: str) -> list[Any]:
        """Return the objects of such a resource that name this job, even if it does not exist."""
        key = JobKey(namespace, name)
        found = (one.of(key) for one in self._by_job if one.served.resource == resource)
        return [item for items in found for item in items.values()]

    def unplaced(self) -> Iterator[tuple[JobFacts, Mapping[str, PodFacts]]]:
        """Yield each job with its pods for which the scheduler has found no node."""
        for key, pods in self._unplaced_of.items():
            if job := self.jobs.store.get(*key):
                yield job, pods

    def judge(self, pods: Iterable[PodFacts]) -> list[PodFacts]:
        """Return the pods, marked with the disruption of their nodes."""
        return self._nodes.judge(pods) if self._nodes else list(pods)

    async def is_node_gone(self, name: str) -> bool:
        """Ask the API server now if a node does not exist; False if the server cannot say."""
        return self._nodes is not None and await self._nodes.is_gone(name)

    async def follow_definition(self) -> Never:
        """Read the MPIJob definition at once and then every minute; a change wakes every job."""
        while True:
            try:
                keeps = registration.keeps_selector(
                    await self._client.get(registration.DEFINITION_PATH)
                )
            except (errors.KubeError, msgspec.DecodeError) as error:  # changes nothing
                log.warning(
                    "the MPIJob definition cannot be read, "
                    "so selectors are left to the webhook: %s",
                    error,
                )
            else:
                if keeps != self._keeps_selector:
                    self._keeps_selector = keeps
                    self._wake_all()
            await asyncio.sleep(DEFINITION_EVERY)

    def _watch(
        self,
        resource: Resource,
        read: Callable[[bytes], T],
        on_change: Callable[[T | None, T | None], None],
        selector: str | None = None,
    ) -> WatchCache[T] | Watches[T]:
        make = partial(
            WatchCache[T],
            self._client,
            resource,
            decode=read,
            on_change=on_change,
            on_unread=partial(self._unread.put, resource),
            random=self._random,
            label_selector=selector,
        )
        cache = watches(make, self._namespaces)
        self._watched[resource] = cache, read
        return cache

    def see(self, resource: Resource, raw: bytes) -> None:
        """Store an object from the API server's answer to our own write."""
        if resource in self._watched:
            cache, read = self._watched[resource]
            cache.store.written(read(raw))

    def see_gone(self, resource: Resource, namespace: str, ref: Identity) -> None:
        """Remove an object that no longer exists."""
        cache, _ = self._watched[resource]
        cache.store.forget(namespace, ref.name, ref.uid)

    def _on_job(self, old: JobFacts | None, new: JobFacts | None) -> None:
        job = new or old
        if job is None:
            return
        key = JobKey(job.metadata.namespace, job.metadata.name)
        if is_news(old, new):
            self._enqueue(key)
        if new is None:
            self._ends.forget(key)

    def _on_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        self._texts.see(old, new)
        _index(self._unplaced_of, _unplaced(old), _unplaced(new))
        self._on_indexed(self._pods_of, old, new)
        key = _key(new or old)
        if key is None:
            return
        if new is not None:
            self._ends.see(key, new)
        elif key not in self._pods_of and self.jobs.store.get(*key) is None:
            self._ends.forget(key)  # the pods of a deleted job end after it

    def _on_indexed(self, index: dict[JobKey, dict[str, F]], old: F | None, new: F | None) -> None:
        _index(index, old, new)
        if is_news(old, new):
            self._wake(_key(old), _key(new))

    def _on_node(self, name: str) -> None:
        # Rare, so an index of all pods by node would cost more than it saves.
        for key in {_key(pod) for pod in self.pods.store.values() if pod.node == name}:
            if key is not None:
                self._enqueue(key)

    def _on_owned(self, old: Fact | None, new: Fact | None) -> None:
        self._wake(_key(old), _key(new))

    def _wake_all(self) -> None:
        for key in self.job_keys():
            self._enqueue(key)

    def _wake(self, before: JobKey | None, after: JobKey | None) -> None:
        if after is not None:
            self._enqueue(after)
        if before is not None and before != after:
            self._enqueue(before)


def _index(index: dict[JobKey, dict[str, F]], old: F | None, new: F | None) -> None:
    before, after = _key(old), _key(new)
    if old is not None and before is not None and before != after:
        index[before].pop(old.metadata.name, None)
        if not index[before]:
            del index[before]
    if new is not None and after is not None:
        index[after][new.metadata.name] = new


def _unplaced(pod: PodFacts | None) -> PodFacts | None:
    """Return the pod if the scheduler has found no node for it."""
    waits = pod is not None and pod.obstacle and not (pod.node or pod.deleting or pod.gates)
    return pod if waits else None


def _key(fact: Fact | None) -> JobKey | None:
    return (
        JobKey(fact.metadata.namespace, fact.metadata.job)
        if fact is not None and fact.metadata.job
        else None
    )


def _opened(found: Packed[C] | None, job: JobFacts) -> C | None:
    """Return what the cache keeps of an object of this job; None if it is of another."""
    if found is None or found.metadata.job_uid != job.metadata.uid:
        return None
    return found.open()

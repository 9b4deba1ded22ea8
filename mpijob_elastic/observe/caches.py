"""The watch caches: MPIJobs, pods, ConfigMaps and Roles by job; nodes and PodGroups if they can be watched.

A change of an object puts its job's key into the queue (kube.queue), so many changes lead to one look; a change of an
MPIJob or a pod that touches nothing we read leads to none. Labels select the watched objects; the operator's ConfigMaps
and Roles carry only `app: JOB`.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, NamedTuple, TypeVar

from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.meta import Identity, KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.served import WhileServed
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.watches import Watches, watches
from mpijob_elastic.model import gang, job_facts
from mpijob_elastic.model.autoscale import Autoscaler
from mpijob_elastic.model.disruption_signs import Signs
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.kube_queue import QueueUnit
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.queue import NO_QUEUE, Queue, Workload
from mpijob_elastic.model.wire import Fact, is_news
from mpijob_elastic.observe import autoscalers, facts_config, facts_pod, pod_groups, queue_units, views, workloads
from mpijob_elastic.observe.nodes import Nodes
from mpijob_elastic.observe.worker_ends import WorkerEnds

T = TypeVar("T", bound=KubeObject)
F = TypeVar("F", bound=Fact)


class JobKey(NamedTuple):
    """A job's namespace and name: the queue's key."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Caches:
    """The caches; `enqueue` is called with the key of each job whose objects changed.

    namespaces: none for all. signs: the signs that a node is about to go; None if nodes are not watched. now: returns
    seconds since the epoch.
    """

    def __init__(
        self,
        client: ApiReader,
        *,
        namespaces: Sequence[str],
        enqueue: Callable[[JobKey], None],
        random: Random,
        signs: Signs | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._enqueue = enqueue
        self._pods_of: dict[JobKey, dict[str, PodFacts]] = defaultdict(dict)
        self._unplaced_of: dict[JobKey, dict[str, PodFacts]] = defaultdict(dict)
        self._workloads_of: dict[JobKey, dict[str, Workload]] = defaultdict(dict)
        self._units_of: dict[JobKey, dict[str, QueueUnit]] = defaultdict(dict)
        self._ends = WorkerEnds(now)
        self._autoscalers_of: dict[JobKey, dict[str, Autoscaler]] = defaultdict(dict)
        self._keeps_selector = False
        self._written: dict[Resource, Callable[[bytes], None]] = {}
        self._gone: dict[Resource, Callable[[str, str, str], None]] = {}

        def watch(
            resource: Resource,
            read: Callable[[bytes], T],
            on_change: Callable[[T | None, T | None], None],
            selector: str | None = None,
        ) -> WatchCache[T] | Watches[T]:
            make = partial(
                WatchCache[T],
                client,
                resource,
                decode=read,
                on_change=on_change,
                random=random,
                label_selector=selector,
            )
            cache = watches(make, namespaces)
            self._written[resource] = lambda raw: cache.store.written(read(raw))
            self._gone[resource] = cache.store.forget
            return cache

        owned = names.LABEL_APP
        self.jobs = watch(resources.MPI_JOBS, job_facts.read, self._on_job)
        self.pods = watch(resources.PODS, facts_pod.read, self._on_pod, names.POD_SELECTOR)
        self.configs = watch(resources.CONFIG_MAPS, facts_config.read_config, self._on_owned, owned)
        self.roles = watch(resources.ROLES, facts_config.read_role, self._on_owned, owned)
        self._required: dict[str, WatchCache[Any] | Watches[Any]] = {
            "mpijobs": self.jobs,
            "pods": self.pods,
            "configmaps": self.configs,
            "roles": self.roles,
        }
        self._gangs = {found: watch(found, pod_groups.read, self._on_owned) for found in gang.POD_GROUPS.values()}
        self._gangs_served = {
            found: WhileServed(client, found, cache, on_change=self._wake_all) for found, cache in self._gangs.items()
        }
        ours = f"{names.LABEL_MANAGED_BY}={names.PROGRAM}"
        self._workloads = watch(
            resources.WORKLOADS, workloads.read, partial(self._on_indexed, self._workloads_of), ours
        )
        self._kueue = WhileServed(client, resources.WORKLOADS, self._workloads, on_change=self._wake_all)
        units = watch(resources.QUEUE_UNITS, queue_units.read, partial(self._on_indexed, self._units_of))
        self._units = WhileServed(client, resources.QUEUE_UNITS, units, on_change=self._wake_all)
        scaling = watch(resources.AUTOSCALERS, autoscalers.read, partial(self._on_indexed, self._autoscalers_of))
        self._autoscalers = WhileServed(client, resources.AUTOSCALERS, scaling, on_change=self._wake_all)
        self._nodes = Nodes(client, signs=signs, on_change=self._on_node, random=random, now=now) if signs else None

    async def run(self) -> None:
        """Watch for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            served = (*self._gangs_served.values(), self._kueue, self._units, self._autoscalers)
            others = (*served, *([self._nodes] if self._nodes else ()))
            for cache in (*self._required.values(), *others):
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
        """Return the seconds since the last sign of life, by resource; of nodes once they could be listed."""
        ages = {resource: cache.age() for resource, cache in self._required.items()}
        of_nodes = self._nodes.age() if self._nodes else None
        return ages if of_nodes is None else ages | {"nodes": of_nodes}

    def unreadable(self) -> dict[str, int]:
        """Return the number of objects that cannot be read, by resource."""
        return {resource: cache.unreadable for resource, cache in self._required.items()}

    def job_keys(self) -> Iterable[JobKey]:
        """Return the keys of all jobs."""
        return [JobKey(job.metadata.namespace, job.metadata.name) for job in self.jobs.store.values()]

    def view(self, key: JobKey, *, probes: views.Probes, holds: views.Holds = views.never_looked) -> JobView | None:
        """Return the job as last seen; None if it is gone."""
        job = self.jobs.store.get(key.namespace, key.name)
        if job is None:
            return None
        groups = gang.pod_groups(job.gang)
        seen = views.view(
            job,
            pods=self.judge(self._pods_of.get(key, {}).values()),
            config=self.configs.store.get(key.namespace, names.config_map(key.name)),
            role=self.roles.store.get(key.namespace, names.launcher(key.name)),
            probes=self._ends.over(key, probes),
            holds=holds,
            gang=self._gangs[groups].store.get(key.namespace, key.name),
            keeps_selector=self._keeps_selector,
        )
        seen = replace(seen, serves_gangs=self._gangs_served[groups].known) if seen.facts.gang else seen
        if self._autoscalers.known:
            seen = replace(seen, autoscalers=tuple(self._autoscalers_of.get(key, {}).values()))
        if job.policy.fill:
            seen = replace(seen, others_wait=tuple(self._others_wait(key, job)))
        if self._units.known and (queued := views.kube_queue(job, self._units_of.get(key, {}).values())):
            seen = replace(seen, kube_queue=queued)
        queue = self._queue(key, job)
        return seen if queue is None else seen.queued(queue)

    def left_behind(self, key: JobKey) -> list[PodFacts]:
        """Return the workers that are being deleted, and still run, of a job that is gone, goes or has finished."""
        pods = self._pods_of.get(key, {}).values()
        deleted = [pod for pod in pods if pod.deleting and pod.phase == "Running" and pod.role == names.ROLE_WORKER]
        if not deleted:
            return deleted
        job = self.jobs.store.get(key.namespace, key.name)
        # Whatever the status says, a job whose launcher runs has not finished.
        has_driver = any(
            pod.role == names.ROLE_LAUNCHER and pod.phase == "Running" and not pod.deleting for pod in pods
        )
        trains = job.metadata.uid if job and not job.deleting and (has_driver or not job.finished) else None
        return [pod for pod in deleted if pod.metadata.job_uid != trains]

    def _queue(self, key: JobKey, job: JobFacts) -> Queue | None:
        if not self._kueue.known:
            absent = Queue(ignored=job.queue) if job.queue else NO_QUEUE
            return None if self._kueue.known is None or job.elsewhere else absent
        found = self._workloads_of.get(key, {})
        if not (job.queue or found or job.elsewhere):
            return NO_QUEUE
        known = self._workloads.store.values()
        return views.queue(job, found.values(), all_known=known)

    def _others_wait(self, key: JobKey, job: JobFacts) -> Iterator[float]:
        """Yield the creation of each worker that another job needs, no node takes, and could run in place of ours."""
        for rival, unplaced in self._unplaced_of.items():
            other = self.jobs.store.get(*rival)
            if other is None or rival == key or other.place != job.place or other.finished:
                continue
            least = gang.least_workers(other.policy, other.replicas, elastic=other.elastic)
            for name, pod in unplaced.items():
                index = names.worker_index(name, job=rival.name)
                is_its_own = pod.metadata.job_uid == other.metadata.uid
                if is_its_own and index is not None and index < least:
                    yield pod.created_at

    def judge(self, pods: Iterable[PodFacts]) -> list[PodFacts]:
        """Return the pods, marked with the disruption of their nodes."""
        return self._nodes.judge(pods) if self._nodes else list(pods)

    async def is_node_gone(self, name: str) -> bool:
        """Ask the API server now if a node does not exist; False if the server cannot say."""
        return self._nodes is not None and await self._nodes.is_gone(name)

    def see_definition(self, *, keeps_selector: bool) -> None:
        """Store what the MPIJob definition says; a change wakes every job."""
        if keeps_selector != self._keeps_selector:
            self._keeps_selector = keeps_selector
            self._wake_all()

    def see(self, resource: Resource, raw: bytes) -> None:
        """Store an object from the API server's answer to our own write."""
        if store := self._written.get(resource):
            store(raw)

    def see_gone(self, resource: Resource, namespace: str, ref: Identity) -> None:
        """Remove an object that no longer exists."""
        self._gone[resource](namespace, ref.name, ref.uid)

    def _on_job(self, old: JobFacts | None, new: JobFacts | None) -> None:
        fact = new or old
        if fact is not None and is_news(old, new):
            self._enqueue(JobKey(fact.metadata.namespace, fact.metadata.name))
        if fact is not None and new is None:
            self._ends.forget(JobKey(fact.metadata.namespace, fact.metadata.name))

    def _on_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        key = _key(new)
        if key is not None and new is not None:
            self._ends.see(key, new)
        _index(self._unplaced_of, _unplaced(old), _unplaced(new))
        self._on_indexed(self._pods_of, old, new)
        gone = _key(old) if new is None else None
        if gone is not None and gone not in self._pods_of and self.jobs.store.get(*gone) is None:
            self._ends.forget(gone)  # the pods of a deleted job end after it

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
    return JobKey(fact.metadata.namespace, fact.metadata.job) if fact is not None and fact.metadata.job else None

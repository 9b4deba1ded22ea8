"""Read what a user asks for (one job, the jobs of a namespace, all jobs), once or live.

Each job comes as a snapshot: the controller's view, and some facts for people. Once: four to six paged lists. Jobs come
first, because they show what is wrong. A list that this user may not read ends the command with a message, except
Roles, Workloads and QueueUnits: few users may read those, and not much depends on them. Live: the watch caches that the
controller has, too.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Generic, TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue import live as kube_queue
from mpijob_elastic.capabilities.kube_queue import wire as queue_units
from mpijob_elastic.capabilities.kube_queue.facts import ENQUEUED, Held, QueueUnit
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import facts as queue
from mpijob_elastic.capabilities.kueue import live as kueue
from mpijob_elastic.capabilities.kueue import wire as workloads_wire
from mpijob_elastic.capabilities.kueue.facts import Asked, Workload
from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.decide import derive
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import ConfigFacts, JobView, Role
from mpijob_elastic.model.wire import Fact
from mpijob_elastic.observe import facts_config, views

T = TypeVar("T", bound=KubeObject)
K = TypeVar("K")
# Seconds that the streams may take to end: the job has been shown, so nobody should wait for them.
CLOSING = 2.0


class NotServed(errors.KubeError):
    """The cluster does not serve the MPIJobs of mpi-operator v0.2.3."""


@dataclass(frozen=True, kw_only=True)
class Source(Generic[T]):
    """Objects of one resource, how their JSON is read, and the selectors of a list or a watch."""

    resource: Resource
    read: Callable[[bytes], T]
    label: str | None = None
    field: str | None = None

    def query(self) -> dict[str, str]:
        """Return the selectors as parameters of a request."""
        given = {"labelSelector": self.label, "fieldSelector": self.field}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """namespace: None for all. job: None for every job there."""

    namespace: str | None
    job: str | None = None

    @property
    def jobs(self) -> Source[SeenJob]:
        """The MPIJobs."""
        field = f"metadata.name={self.job}" if self.job else None
        return Source(resource=resources.MPI_JOBS, read=shown_facts.read_job, field=field)

    @property
    def pods(self) -> Source[SeenPod]:
        """Their pods."""
        mine = f",{names.LABEL_JOB_NAME}={self.job}" if self.job else ""
        return Source(resource=resources.PODS, read=shown_facts.read_pod, label=names.POD_SELECTOR + mine)

    @property
    def configs(self) -> Source[ConfigFacts]:
        """Their ConfigMaps."""
        return self._side(resources.CONFIG_MAPS, facts_config.read_config, names.config_map)

    @property
    def roles(self) -> Source[Role]:
        """The Roles of their launchers."""
        return self._side(resources.ROLES, facts_config.read_role, names.launcher)

    def _side(self, resource: Resource, read: Callable[[bytes], T], name_of: Callable[[str], str]) -> Source[T]:
        if self.job:
            return Source(resource=resource, read=read, field=f"metadata.name={name_of(self.job)}")
        return Source(resource=resource, read=read, label=names.LABEL_APP)


_WORKLOADS = Source(resource=resources.WORKLOADS, read=workloads_wire.read)
_UNITS = Source(resource=resources.QUEUE_UNITS, read=queue_units.read)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """pods: by name. role_readable: this user may read Roles."""

    view: JobView
    job: SeenJob
    pods: Mapping[str, SeenPod]
    role_readable: bool


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """Return the jobs, sorted by namespace and name. Raises NotServed and other `errors.KubeError`."""
    found = await jobs(client, selection)
    pods = await _list(client, selection.namespace, selection.pods)
    configs = await _list(client, selection.namespace, selection.configs)
    roles: list[Role] | None = None
    with suppress(errors.Forbidden):
        roles = await _list(client, selection.namespace, selection.roles)
    workloads: list[Workload] | None = None
    if any(job.facts.of(Asked) for job in found):
        with suppress(errors.Forbidden, errors.NotFound):  # of others, too, because they tell the place in the queue
            workloads = await _list(client, selection.namespace, _WORKLOADS)
    units: list[QueueUnit] = []
    if any(job.facts.of(Held) for job in found):
        with suppress(errors.Forbidden, errors.NotFound):
            units = await _list(client, selection.namespace, _UNITS)
    return snapshots(jobs=found, pods=pods, configs=configs, roles=roles, workloads=workloads, units=units)


async def jobs(client: ApiReader, selection: Selection) -> list[SeenJob]:
    """Return the MPIJobs alone. Raises as `fetch` does."""
    kind = resources.MPI_JOBS
    try:
        return await _list(client, selection.namespace, selection.jobs)
    except errors.NotFound as error:
        raise NotServed(
            f"{client.host} does not serve {kind.kind} {kind.api_version}; install mpi-operator v0.2.3, "
            "or choose another cluster with --context"
        ) from error


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


def snapshots(
    *,
    jobs: Iterable[SeenJob],
    pods: Collection[SeenPod],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] | None,
    workloads: Collection[Workload] | None = None,
    units: Iterable[QueueUnit] = (),
) -> list[Snapshot]:
    """Return each job with its objects, sorted by namespace and name.

    roles, workloads: None where this user may not read them, or where they are not needed. units: none there either.
    """
    ordered = sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    facts = [pod.facts for pod in pods]
    found = views.each([job.facts for job in ordered], pods=facts, configs=configs, roles=roles or ())
    pods_of, units_of = _grouped(pods, _job_of), _grouped(units, _job_of)
    workloads_of = _grouped(workloads or (), lambda one: one.metadata.job_uid)
    places = queue.places(workloads or ())
    result = []
    for job, plain in zip(ordered, found, strict=True):
        key = (plain.namespace, plain.name)
        seen: list[Known] = []
        if key in units_of:
            seen += [queued] if (queued := kube_queue.of(job.facts, units_of[key])) else []
        if workloads is not None and (job.facts.of(Asked) or Asked()).queue:
            asked = kueue.queue(job.facts, workloads_of[plain.ref.uid], all_known=workloads)
            seen.append(Kueue(replace(asked, places=places)))
        view = capabilities.told(plain, seen=seen)
        mine = {pod.metadata.name: pod for pod in pods_of[key]}
        result.append(Snapshot(view=view, job=_named(job, view), pods=mine, role_readable=roles is not None))
    return result


def _grouped(found: Iterable[T], key: Callable[[T], K]) -> Mapping[K, list[T]]:
    grouped: dict[K, list[T]] = defaultdict(list)
    for one in found:
        grouped[key(one)].append(one)
    return grouped


def _job_of(fact: Fact) -> tuple[str, str]:
    return fact.metadata.namespace, fact.metadata.job


def _named(job: SeenJob, view: JobView) -> SeenJob:
    """Return the job, called queued while nothing of it may run: the operator does not know that."""
    state = derive(view, now=time.time())
    held, asked = view.of(KubeQueue), view.of(Kueue)
    if held and (unit := held.waiting(state)):
        return msgspec.structs.replace(job, state=unit.phase or ENQUEUED)
    base = asked.queue.base(view.name) if asked and asked.queue else None
    is_queued = base and base.waits and all(pod.facts.gates for pod in view.pods) and not state.wishes.stop
    return msgspec.structs.replace(job, state="Queued") if is_queued else job


async def _list(client: ApiReader, namespace: str | None, source: Source[T]) -> list[T]:
    return await list_objects(client, source.resource.path(namespace), source.read, query=source.query())

"""The operator's loop: caches -> queue of jobs -> plan -> writes and Events."""

import asyncio
import logging
from dataclasses import dataclass, field

from msgspec.structs import replace

from lab.operator import STARTED, clock, status, sync
from lab.operator.cache import Cache, Change
from lab.operator.job import MPIJob
from lab.operator.kinds import (
    CONFIG_MAPS,
    MPI_JOBS,
    POD_GROUPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from lab.operator.limits import TokenBucket
from lab.operator.pods import PodOptions
from lab.operator.queue import Queue
from lab.operator.recorder import Recorder
from lab.operator.steps import Create, Delete, Fail, Send, Step, WriteStatus
from lab.operator.wire import Dependent, Key
from lab.operator.writes import Writer
from mpijob_elastic.kube.errors import ApiError, KubeError, NotFound
from mpijob_elastic.kube.writer import ApiWriter

# The queue's own limit of additions (client-go's DefaultControllerRateLimiter), a second and at once.
QUEUE_RATE, QUEUE_BURST = 10.0, 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Options:
    """`namespace` "" means all; `qps` 0 lifts the limits of clients and queue."""

    namespace: str = ""
    qps: float = 5.0
    burst: int = 10
    threads: int = 2
    pods: PodOptions = field(default_factory=PodOptions)


class SyncFailed(Exception):
    """A sync gave up."""


class Controller:
    """One operator; `run` it."""

    def __init__(self, client: ApiWriter, options: Options) -> None:
        self._client = client
        self._options = options
        self._writer = Writer(client, qps=options.qps, burst=options.burst)
        self._recorder = Recorder(self._writer)
        self._queue = Queue(overall=TokenBucket(rate=QUEUE_RATE if options.qps else 0, burst=QUEUE_BURST))
        self._jobs = Cache(resource=MPI_JOBS, kind=MPIJob, notify=self._job_changed)
        resources = [PODS, CONFIG_MAPS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS]
        if options.pods.gang_scheduler:
            resources.append(POD_GROUPS)
        self._dependents = {
            resource: Cache(resource=resource, kind=Dependent, notify=self._dependent_changed) for resource in resources
        }
        self._caches: dict[Resource, Cache[MPIJob] | Cache[Dependent]] = {MPI_JOBS: self._jobs, **self._dependents}

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for cache in self._caches.values():
                tasks.create_task(cache.run(self._client, namespace=self._options.namespace))
            for cache in self._caches.values():
                await cache.synced.wait()
            tasks.create_task(self._recorder.run())
            for _ in range(self._options.threads):
                tasks.create_task(self._work())
            log.info(STARTED)

    def _job_changed(self, change: Change, job: MPIJob) -> None:
        if change == "added":
            # The operator notes this in its cache only. It is written with the next status, and lost for ever if
            # somebody else changes the job before that.
            new, event = status.created(job, clock.timestamp())
            self._jobs.items[job.key] = replace(job, status=new)
            self._recorder.send(job, event)
        if change != "deleted":
            self._queue.add_rate_limited(job.key)

    def _dependent_changed(self, _: Change, dependent: Dependent) -> None:
        owner = dependent.owner
        if owner is None or owner.kind != MPI_JOBS.kind or owner.api_version != MPI_JOBS.api_version:
            return
        key = dependent.metadata.namespace, owner.name
        if key in self._jobs.items:
            self._queue.add_rate_limited(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._sync(key)
            except (KubeError, SyncFailed) as error:
                log.warning("error syncing %s/%s: %s", *key, error)
                self._queue.add_rate_limited(key)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)

    async def _sync(self, key: Key) -> None:
        job = self._jobs.items.get(key)
        if job is None:
            return

        def look(resource: Resource, name: str) -> Dependent | None:
            return self._dependents[resource].items.get((job.namespace, name))

        written: dict[Resource, int] = {}
        for step in sync.plan(job, look=look, options=self._options.pods, now=clock.timestamp()):
            await self._do(job, step, written)
        # The operator's caches run beside its syncs and are ahead of the next one; on one event loop, wait for them.
        for resource, version in written.items():
            await self._caches[resource].catch_up(version)

    async def _do(self, job: MPIJob, step: Step, written: dict[Resource, int]) -> None:
        match step:
            case Create(resource=resource):
                written[resource] = await self._create(job, step)
            case Delete():
                await self._delete(job, step)
            case Send(event=event):
                self._recorder.send(job, event)
            case WriteStatus(status=new):
                written[MPI_JOBS] = await self._writer.update_status(job, new)
            case Fail(message=message):
                raise SyncFailed(message)

    async def _create(self, job: MPIJob, step: Create) -> int:
        try:
            return await self._writer.create(step.resource, job.namespace, step.body)
        except KubeError as error:
            if step.complaint:
                message = error.message if isinstance(error, ApiError) else str(error)
                event = status.Event(type="Warning", reason=status.JOB_FAILED, message=f"{step.complaint}: {message}")
                self._recorder.send(job, event)
            raise

    async def _delete(self, job: MPIJob, step: Delete) -> None:
        try:
            await self._writer.delete(step.resource, job.namespace, step.name)
        except NotFound:
            if not step.may_be_gone:
                raise

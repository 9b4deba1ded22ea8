"""The resizes of a tenant with a bad neighbour, 3→1 with ranks in the leaving workers and 1→3, and their times.

All times are the API server's own, from its audit log, so a busy process of the campaign falsifies none.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bench import jobs
from bench.audit import Tail, Write
from bench.changes import Writer, writer_of
from bench.drain import ended, running_ranks
from bench.rest import settled
from lab.cluster import Cluster
from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter

LARGE, SMALL = 3, 1
DRAIN_TIMEOUT = "10m"
POLL = 0.1


@dataclass(frozen=True, kw_only=True)
class ScaleIn:
    """Seconds from the edit's arrival at the API server.

    answered: until it was stored. unlisted: until the host list lacks the surplus. deleted: until the last surplus
    worker was told to end. gone: until the last was gone. ours: from the stored edit until our write of the list came.
    """

    answered: float
    ours: float
    unlisted: float
    deleted: float
    gone: float


@dataclass(frozen=True, kw_only=True)
class ScaleOut:
    """Seconds from the edit's arrival at the API server.

    created: until the last new pod was. ready: until kwok says that all run. listed: until the host list names them.
    ours: from the new workers' readiness until our write of the list came; the Role has named them since 3→1.
    """

    created: float
    ready: float
    listed: float
    ours: float


@dataclass(frozen=True, kw_only=True)
class Victim:
    """The tenant; `client` has the rights of its namespace, and is told apart by `jobs.AGENT`."""

    cluster: Cluster
    client: ApiWriter
    namespace: str

    async def create(self) -> None:
        """Create the job, and wait until it is right."""
        tail = Tail(self.cluster.audit_log)
        job = jobs.manifest(jobs.JOB, replicas=LARGE, drain_timeout=DRAIN_TIMEOUT)
        await jobs.create(self.client, self.namespace, job)
        await settled(self.client, tail, namespace=self.namespace, replicas=LARGE)

    async def rest(self) -> None:
        """Let the job be right again, whatever was before. Raises LabError if it is not in time."""
        tail = Tail(self.cluster.audit_log)
        await jobs.resize(self.client, self.namespace, jobs.JOB, replicas=LARGE)
        await settled(self.client, tail, namespace=self.namespace, replicas=LARGE)

    async def scale_in(self) -> ScaleIn:
        """Take the surplus away while its ranks run. Raises LabError if it is not done in time."""
        tail = Tail(self.cluster.audit_log)
        async with running_ranks(self.cluster, self.namespace, _new()) as ranks:
            await jobs.resize(self.client, self.namespace, jobs.JOB, replicas=SMALL)
            await ended(ranks)
            return scale_in(await settled(self.client, tail, namespace=self.namespace, replicas=SMALL))

    async def scale_out(self, *, operator_has: float) -> tuple[ScaleOut, bool]:
        """Ask for more workers. Raises LabError if it is not done in time.

        The pods are made in the operator's place after `operator_has` seconds, because its queue takes ten edits a
        second of all tenants together. The bool tells whether the operator had made them.
        """
        tail = Tail(self.cluster.audit_log)
        await jobs.resize(self.client, self.namespace, jobs.JOB, replicas=LARGE)
        by_operator = await self._created(tail, within=operator_has)
        if not by_operator:
            await self._create_workers()
        writes = await settled(self.client, tail, namespace=self.namespace, replicas=LARGE)
        return scale_out(writes), by_operator

    async def _created(self, tail: Tail, *, within: float) -> bool:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if len(_pods(tail.writes(), "create", namespace=self.namespace)) == LARGE - SMALL:
                return True
            await asyncio.sleep(POLL)
        return False

    async def _create_workers(self) -> None:
        path = MPI_JOBS.path(self.namespace, jobs.JOB)
        job = msgspec.json.decode(await self.client.get(path))
        for index in range(SMALL, LARGE):
            with contextlib.suppress(errors.Conflict):  # the operator was faster
                await self.client.create_object(PODS.path(self.namespace), body=objects.worker(job, index))


def scale_in(writes: Sequence[Write]) -> ScaleIn:
    """Return the times of a scale-in. Raises ValueError if a write is missing."""
    edit, after = _edit(writes)
    deleted = _pods(after, "delete")
    unlisted = min(_lists(after), key=_when)
    return ScaleIn(
        answered=edit.at - edit.received,
        ours=max(0.0, unlisted.received - edit.at),
        unlisted=unlisted.at - edit.received,
        deleted=max(write.at for write in deleted if writer_of(write) is Writer.CONTROLLER) - edit.received,
        gone=max(write.at for write in deleted) - edit.received,
    )


def scale_out(writes: Sequence[Write]) -> ScaleOut:
    """Return the times of a scale-out. Raises ValueError if a write is missing."""
    edit, after = _edit(writes)
    # The first Status of each new pod says that it is ready.
    runs = {write.name: write.at for write in reversed(_pods(after, "patch", subresource="status")) if _by_kwok(write)}
    ready = max((runs[name] for name in _new() if name in runs), default=0.0)
    listed = max(_lists(after), key=_when)
    return ScaleOut(
        created=max(write.at for write in _pods(after, "create")) - edit.received,
        ready=ready - edit.received,
        listed=listed.at - edit.received,
        ours=max(0.0, listed.received - ready),
    )


def _new() -> list[str]:
    return [names.worker(jobs.JOB, index) for index in range(SMALL, LARGE)]


def _when(write: Write) -> float:
    return write.at


def _by_kwok(write: Write) -> bool:
    return write.user == "lab-kwok"


def _lists(writes: Sequence[Write]) -> list[Write]:
    return [write for write in writes if write.resource == "configmaps" and writer_of(write) is Writer.CONTROLLER]


def _edit(writes: Sequence[Write]) -> tuple[Write, list[Write]]:
    edit = [write for write in writes if writer_of(write) is Writer.BENCH and write.resource == "mpijobs"][-1]
    return edit, [write for write in writes if write.received > edit.received]


def _pods(writes: Sequence[Write], verb: str, *, subresource: str = "", namespace: str | None = None) -> list[Write]:
    return [
        write
        for write in writes
        if (write.resource, write.verb, write.subresource) == ("pods", verb, subresource)
        and namespace in (None, write.namespace)
    ]

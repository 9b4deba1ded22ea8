"""Measure 3→1 with ranks in the leaving workers: killed ranks, and how long the workers outlive their ranks.

A rank is a process in the worker's sandbox, which `kubectl exec` starts, like Horovod's ranks. It
ends by itself some time after its host has left the list (1.8 to 3.1 s with Horovod on a real
kubelet); see lab/ranks.py.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

from bench import changes, jobs
from bench.audit import Tail
from bench.rest import settled
from lab.cluster import Cluster
from lab.ranks import Ranks, State
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter

BEFORE, AFTER = 3, 1
RANK_SECONDS = 2
DRAIN_TIMEOUT = "60s"
# Seconds for the ranks to start or end: far above the usual time.
PATIENCE = 60.0
POLL = 0.02


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Number of killed ranks; seconds from the edit, and from the last rank's end, to the last deletion."""

    killed: int
    after_edit: float
    after_ranks: float


async def run(cluster: Cluster, client: ApiWriter, *, namespace: str) -> Drain:
    """Run the edit in a new job.

    Raises LabError if the job does not become right, and what `ApiReader` raises.
    """
    tail = Tail(cluster.audit_log)
    await jobs.create(
        client, namespace, jobs.manifest(jobs.JOB, replicas=BEFORE, drain_timeout=DRAIN_TIMEOUT)
    )
    await settled(client, tail, namespace=namespace, replicas=BEFORE)
    tail = Tail(cluster.audit_log)
    leaving = [names.worker(jobs.JOB, index) for index in range(AFTER, BEFORE)]
    async with running_ranks(cluster, namespace, leaving) as ranks:
        await jobs.resize(client, namespace, jobs.JOB, replicas=AFTER)
        ended_at = await ended(ranks)
        killed = [*ranks.states.values()].count("killed")
    writes = await settled(client, tail, namespace=namespace, replicas=AFTER)
    course = changes.course(writes, job=jobs.JOB)
    after_edit = (course.deleted or 0.0) / 1000
    return Drain(
        killed=killed, after_edit=after_edit, after_ranks=course.edited_at + after_edit - ended_at
    )


@asynccontextmanager
async def running_ranks(
    cluster: Cluster, namespace: str, workers: Collection[str]
) -> AsyncIterator[Ranks]:
    """Have a rank in each of the workers, which runs; none is left at the end.

    Raises TimeoutError, LabError.
    """
    with closing(Ranks(cluster, namespace=namespace, job=jobs.JOB, commit=RANK_SECONDS)) as ranks:
        ranks.discover(workers)
        await _until(ranks, {"running", "killed"})
        yield ranks


async def ended(ranks: Ranks) -> float:
    """Let all hosts have left the list, and return when the last rank has ended.

    Raises TimeoutError.
    """
    ranks.discover([])
    return await _until(ranks, {"ended", "killed"})


async def _until(ranks: Ranks, wanted: Collection[State]) -> float:
    """Return when all ranks are so. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while not {*ranks.states.values()} <= {*wanted}:
            await asyncio.sleep(POLL)
            ranks.commit()
    return time.time()

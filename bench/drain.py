"""Measure 3→1 with ranks in the leaving workers: killed ranks, and how long the workers outlive their ranks.

A rank is a process in the worker's sandbox, which `kubectl exec` starts, like Horovod's ranks. It ends by itself some
time after its host has left the list (1.8 to 3.1 s with Horovod on a real kubelet); see lab/ranks.py.
"""

import asyncio
import time
from collections.abc import Collection
from contextlib import closing
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
PATIENCE = 30.0
POLL = 0.02


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Number of killed ranks; seconds from the edit, and from the last rank's end, to the last deletion."""

    killed: int
    after_edit: float
    after_ranks: float


async def run(cluster: Cluster, client: ApiWriter, *, namespace: str) -> Drain:
    """Run the edit in a new job. Raises LabError if the job does not become right, and what `ApiReader` raises."""
    tail = Tail(cluster.audit_log)
    await jobs.create(client, namespace, jobs.manifest(jobs.JOB, replicas=BEFORE, drain_timeout=DRAIN_TIMEOUT))
    await settled(client, tail, namespace=namespace, replicas=BEFORE)
    tail = Tail(cluster.audit_log)
    with closing(Ranks(cluster, namespace=namespace, job=jobs.JOB, commit=RANK_SECONDS)) as ranks:
        ranks.discover([names.worker(jobs.JOB, index) for index in range(AFTER, BEFORE)])
        await _until(ranks, {"running", "killed"})
        await jobs.resize(client, namespace, jobs.JOB, replicas=AFTER)
        ranks.discover([])
        ended_at = await _until(ranks, {"ended", "killed"})
        killed = [*ranks.states.values()].count("killed")
    writes = await settled(client, tail, namespace=namespace, replicas=AFTER)
    course = changes.course(writes, job=jobs.JOB)
    after_edit = (course.deleted or 0.0) / 1000
    return Drain(killed=killed, after_edit=after_edit, after_ranks=course.edited_at + after_edit - ended_at)


async def _until(ranks: Ranks, wanted: Collection[State]) -> float:
    """Return when all ranks are so. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while not {*ranks.states.values()} <= {*wanted}:
            await asyncio.sleep(POLL)
            ranks.commit()
    return time.time()

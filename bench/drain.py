"""Measure 3→1 with ranks in the leaving workers: killed ranks, and how long the workers outlive their ranks.

A rank is a process in the worker's sandbox. `kubectl exec` starts it, like Horovod's ranks. It ends by itself, like an
elastic rank whose host has left discover_hosts.sh (1.8 to 3.1 s with Horovod on a real kubelet).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench import changes, jobs
from bench.audit import Tail
from bench.rest import settled
from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter

BEFORE, AFTER = 3, 1
RANK_SECONDS = 2
STARTED = b"started\n"
DRAIN_TIMEOUT = "60s"
# Seconds for a rank to start or end: far above the usual time.
PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Number of killed ranks; seconds from the edit, and from the last rank's end, to the last deletion."""

    killed: int
    after_edit: float
    after_ranks: float


@dataclass(frozen=True, kw_only=True)
class _Ended:
    code: int
    at: float


async def run(cluster: Cluster, client: ApiWriter, *, namespace: str) -> Drain:
    """Run the edit in a new job. Raises LabError if the job does not become right, and what `ApiReader` raises."""
    tail = Tail(cluster.audit_log)
    await jobs.create(client, namespace, jobs.manifest(jobs.JOB, replicas=BEFORE, drain_timeout=DRAIN_TIMEOUT))
    await settled(client, tail, namespace=namespace, replicas=BEFORE)
    tail = Tail(cluster.audit_log)
    async with AsyncExitStack() as stack:
        leaving = [names.worker(jobs.JOB, index) for index in range(AFTER, BEFORE)]
        ranks = [await stack.enter_async_context(started_rank(cluster, namespace, worker)) for worker in leaving]
        await jobs.resize(client, namespace, jobs.JOB, replicas=AFTER)
        ended = await asyncio.gather(*(_end(rank) for rank in ranks))
    writes = await settled(client, tail, namespace=namespace, replicas=AFTER)
    course = changes.course(writes, job=jobs.JOB)
    after_edit = (course.deleted or 0.0) / 1000
    return Drain(
        killed=sum(end.code != 0 for end in ended),
        after_edit=after_edit,
        after_ranks=course.edited_at + after_edit - max(end.at for end in ended),
    )


@asynccontextmanager
async def started_rank(cluster: Cluster, namespace: str, worker: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a rank in a worker: it has started, and ends by itself after RANK_SECONDS."""
    script = f"echo started; exec sleep {RANK_SECONDS}"
    process = await asyncio.create_subprocess_exec(
        *(str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace),
        *("exec", worker, "--", "/bin/sh", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readuntil(STARTED)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _end(rank: asyncio.subprocess.Process) -> _Ended:
    async with asyncio.timeout(PATIENCE):
        code = await rank.wait()
    return _Ended(code=code, at=time.time())

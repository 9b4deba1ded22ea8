"""3→1 while ranks run in the workers that leave: whether they are killed, and how long the workers outlive them.

A rank is a process in the worker's sandbox, started by `kubectl exec` as Horovod starts its own, that ends by itself as
an elastic rank does once its host has left discover_hosts.sh (measured with Horovod on a real kubelet: 1.8 to 3.1 s).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench import changes, jobs
from bench.audit import Tail
from bench.settle import settled
from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter

BEFORE, AFTER = 3, 1
RANK_SECONDS = 2
STARTED = b"started\n"
DRAIN_TIMEOUT = "60s"
# To start, and to end: both far above what they take.
PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Ranks that did not end by themselves; seconds from the edit, and from the last rank's end, to the deletions."""

    killed: int
    after_edit: float
    after_ranks: float


@dataclass(frozen=True, kw_only=True)
class _Ended:
    code: int
    at: float


async def run(cluster: Cluster, client: ApiWriter, *, namespace: str) -> Drain:
    """One such edit in a new job. Raises LabError where it does not come right, and what `Client` raises."""
    tail = Tail(cluster.audit_log)
    await jobs.create(client, namespace, jobs.manifest(jobs.JOB, replicas=BEFORE, drain_timeout=DRAIN_TIMEOUT))
    await settled(client, tail, namespace=namespace, replicas=BEFORE)
    tail = Tail(cluster.audit_log)
    async with AsyncExitStack() as stack:
        leaving = [names.worker(jobs.JOB, index) for index in range(AFTER, BEFORE)]
        ranks = [await stack.enter_async_context(_rank(cluster, namespace, worker)) for worker in leaving]
        await jobs.resize(client, namespace, jobs.JOB, replicas=AFTER)
        ended = await asyncio.gather(*(_end(rank) for rank in ranks))
    writes = await settled(client, tail, namespace=namespace, replicas=AFTER)
    course = changes.course(writes, job=jobs.JOB)
    after_edit = (course.deleted or 0.0) / 1000
    return Drain(
        killed=sum(one.code != 0 for one in ended),
        after_edit=after_edit,
        after_ranks=course.edited_at + after_edit - max(one.at for one in ended),
    )


@asynccontextmanager
async def _rank(cluster: Cluster, namespace: str, worker: str) -> AsyncIterator[asyncio.subprocess.Process]:
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

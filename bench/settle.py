"""Waits until a change is over: nobody has written for a while, and then everything is as it should be.

Nothing is asked of the API server meanwhile, for on a small machine that would slow down what is measured.
"""

from __future__ import annotations

import asyncio
import time

from bench import jobs
from bench.audit import Tail, Write
from lab.errors import LabError
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter

# Seconds. Longer than any pause that a change may take in between: our pacing of host lists (3 s), client limits,
# back-offs. It also refills the operators' token buckets before the next edit.
QUIET = 4.0
LIMIT = 90.0
POLL = 0.1


async def settled(client: ApiWriter, tail: Tail, *, namespace: str, replicas: int) -> list[Write]:
    """The writes in `namespace` since `tail` began, once all is quiet and right. Raises LabError where it never is."""
    deadline = time.monotonic() + LIMIT
    while True:
        writes = await quiet(tail, namespace=namespace)
        complaint = await _complaint(client, namespace, replicas)
        if not complaint:
            return writes
        if time.monotonic() > deadline:
            raise LabError(f"{namespace}/{jobs.JOB} is not right {LIMIT:.0f} s after it was asked for: {complaint}")


async def quiet(tail: Tail, *, namespace: str) -> list[Write]:
    """The writes in `namespace` since `tail` began, once there was none for a while. Raises LabError."""
    begin = time.time()
    while time.time() < begin + LIMIT:
        writes = [write for write in tail.writes() if write.namespace == namespace]
        latest = max([begin, *(write.at for write in writes)])
        if time.time() - latest >= QUIET:
            return writes
        await asyncio.sleep(POLL)
    raise LabError(f"{namespace} is not at rest after {LIMIT:.0f} s: somebody writes on and on")


async def _complaint(client: ApiWriter, namespace: str, replicas: int) -> str:
    try:
        return (await jobs.look(client, namespace, jobs.JOB)).lacks(jobs.JOB, replicas)
    except errors.NotFound as error:
        return str(error)

"""Wait until a change is over: there was no write for a while, and all objects are right.

The wait sends no request to the API server, because that would slow down the measured processes on
a small machine.
"""

import asyncio
import time
from collections.abc import Sequence

from bench import jobs
from bench.audit import Tail, Write
from lab.errors import LabError
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter

# Seconds. Longer than any pause within a change: our pacing of host lists (3 s), client limits,
# back-offs. It also refills the operators' token buckets before the next edit.
QUIET = 4.0
LIMIT = 300.0
POLL = 0.1


async def settled(
    client: ApiWriter,
    tail: Tail,
    *,
    namespace: str,
    replicas: int,
    names: Sequence[str] = (jobs.JOB,),
) -> list[Write]:
    """Wait until all is quiet and these jobs are right; return the writes in `namespace` since `tail` began.

    Raises LabError.
    """
    deadline = time.monotonic() + LIMIT
    while True:
        writes = await quiet(tail, namespace=namespace)
        complaints = [
            f"{name}: {one}"
            for name in names
            if (one := await _complaint(client, namespace, name, replicas))
        ]
        if not complaints:
            return writes
        if time.monotonic() > deadline:
            raise LabError(
                f"{namespace} is not right {LIMIT:.0f} s after the edit: {complaints[0]}"
            )


async def quiet(tail: Tail, *, namespace: str) -> list[Write]:
    """Wait until there was no write for a while; return those in `namespace` since the start of `tail`.

    Raises LabError.
    """
    begin = time.time()
    while time.time() < begin + LIMIT:
        writes = [write for write in tail.writes() if write.namespace == namespace]
        latest = max([begin, *(write.at for write in writes)])
        if time.time() - latest >= QUIET:
            return writes
        await asyncio.sleep(POLL)
    raise LabError(f"{namespace} is not at rest after {LIMIT:.0f} s: there are still writes")


async def _complaint(client: ApiWriter, namespace: str, name: str, replicas: int) -> str:
    try:
        return (await jobs.look(client, namespace, name)).lacks(name, replicas)
    except errors.NotFound as error:
        return str(error)

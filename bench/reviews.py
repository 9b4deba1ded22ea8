"""Send AdmissionReviews straight to a webhook process: reviews per second, and the time of each.

If there are two cores, server and load run on a core each. The target is about reviews per second of the webhook's own
CPU time, which does not depend on the speed of the load.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.load import Load
from bench.processes import pin, usage
from bench.statistics import percentile
from lab.errors import LabError

CONNECTIONS = (1, 16, 64)
SECONDS = 5.0
PATIENCE = 60.0
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Reviews per second of time and per second of the webhook's CPU time; 50th and 99th percentile in ms."""

    a_second: float
    a_cpu_second: float
    p50: float
    p99: float


async def run(pid: int, port: int, *, connections: int, review: Path, seconds: float = SECONDS) -> Rate:
    """Load the webhook for `seconds`. Raises LabError if any answer is wrong."""
    cores = sorted(os.sched_getaffinity(0))
    pin(pid, core=cores[0])
    before = usage(pid).cpu
    load = await _load(port, connections, review, seconds=seconds, core=cores[-1])
    cpu = usage(pid).cpu - before
    if load.wrong:
        raise LabError(f"{load.wrong} of {len(load.took)} reviews over {connections} connections got a wrong answer")
    return Rate(
        a_second=len(load.took) / load.seconds,
        a_cpu_second=len(load.took) / cpu,
        p50=percentile(load.took, 50) * 1000,
        p99=percentile(load.took, 99) * 1000,
    )


async def _load(port: int, connections: int, review: Path, *, seconds: float, core: int) -> Load:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.load", f"--port={port}", f"--connections={connections}"),
        *(f"--seconds={seconds}", f"--body={review}", "--expect=JSONPatch"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        pin(process.pid, core=core)
        async with asyncio.timeout(PATIENCE):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise LabError(f"the load on the webhook ended with exit code {process.returncode}: see its message above")
    return msgspec.json.decode(output, type=Load)

"""Size: one fleet, and what two controllers cost beside it.

The first finds the fleet as the operator left it, and publishes the hosts of all jobs. The second starts beside a fleet
at rest, rests, follows events of kubelets, and takes a job of 1,000 workers in to one.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import aiohttp

from bench.processes import MIB, usage
from lab.ports import free_ports
from lab.processes import spawn
from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, LEASES, MPI_JOBS, PODS
from mpijob_elastic.model.hosts import parse_script
from tests.campaign.size_api import SmallApi
from tests.campaign.size_fleet import WORKERS, Fleet, place

ROOT = Path(__file__).parents[2]
LARGE_JOB = 1_000
# Events of kubelets, and how many in a second.
EVENTS, EVENTS_A_SECOND = 5_000, 250
# Seconds: without a write until a controller counts as at rest; for which its rest is measured; for any change.
QUIET, REST, PATIENCE = 5.0, 30.0, 600.0
POLL = 0.1


class Violated(Exception):
    """The controller did what it must not, or not what it must."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds, CPU seconds, MiB and counts; `size.ROWS` explains each."""

    publish: float
    publish_cpu: float
    ready: float
    leads: float
    start_cpu: float
    start_peak: float
    rest_memory: float
    rest_cpu: float
    events_cpu: float
    listed: float
    deleted: float
    scale_in_cpu: float
    scale_in_writes: int
    scale_in_execs: int
    peak: float


async def measure(workers: int, random: Random) -> Cost:
    """Return the costs beside a fleet of so many workers. Raises Violated."""
    jobs = workers // WORKERS
    async with SmallApi() as api:
        fleet = Fleet(first=api.version)
        api.load(made for number in range(jobs) for made in fleet.job(number))
        api.load(fleet.nodes(jobs))
        began = time.monotonic()
        async with _controller(api) as pid:
            publish, publish_cpu = await _published(api, jobs) - began, usage(pid).cpu
        api.calls.clear()
        began = time.monotonic()
        async with _controller(api) as pid:
            ready, start = time.monotonic() - began, usage(pid)
            await _until(lambda: api.calls["PATCH", LEASES.plural] > 0, "the second controller leads")
            leads = time.monotonic() - began
            await asyncio.sleep(QUIET)
            before = usage(pid)
            await asyncio.sleep(REST)
            rest = usage(pid)
            idle = (rest.cpu - before.cpu) / REST
            began = time.monotonic()
            await _send_events(api, jobs, random)
            events_cpu = usage(pid).cpu - rest.cpu - idle * (time.monotonic() - began)
            if _writes(api):
                raise Violated(f"writes at rest: {api.calls}")
            listed, deleted, scale_in_cpu = await _scale_in(api, jobs, pid, idle)
            return Cost(
                publish=publish,
                publish_cpu=publish_cpu,
                ready=ready,
                leads=leads,
                start_cpu=start.cpu,
                start_peak=start.peak / MIB,
                rest_memory=rest.resident / MIB,
                rest_cpu=60 * idle,
                events_cpu=events_cpu * 1_000 / EVENTS,
                listed=listed,
                deleted=deleted,
                scale_in_cpu=scale_in_cpu,
                scale_in_writes=_writes(api),
                scale_in_execs=api.calls["exec", PODS.plural],
                peak=usage(pid).peak / MIB,
            )


async def _published(api: SmallApi, jobs: int) -> float:
    """Wait until all jobs have their list and nothing more is written; return when the last write was seen."""
    written, since = 0, time.monotonic()
    while api.calls["PATCH", CONFIG_MAPS.plural] < jobs or time.monotonic() < since + QUIET:
        if written != (written := _writes(api)):
            since = time.monotonic()
        if time.monotonic() > since + PATIENCE:
            raise Violated(f"not all jobs are published: {api.calls}")
        await asyncio.sleep(POLL)
    return since


async def _send_events(api: SmallApi, jobs: int, random: Random) -> None:
    """Send statuses as kubelets write them, in which nothing matters to us."""
    began = time.monotonic()
    for number in range(EVENTS):
        await asyncio.sleep(max(0.0, began + number / EVENTS_A_SECOND - time.monotonic()))
        namespace, job = place(random.randrange(jobs))
        name = names.worker(job, random.randrange(WORKERS))
        status = api.read(PODS, namespace, name)["status"]
        status["containerStatuses"][0]["imageID"] = f"example/train@sha256:{number:064x}"
        api.update(PODS, namespace, name, {"status": status})
    await asyncio.sleep(QUIET)


async def _scale_in(api: SmallApi, jobs: int, pid: int, idle: float) -> tuple[float, float, float]:
    """Return the seconds until the list is right and until the last pod is gone, and the CPU seconds.

    idle: CPU seconds that a second of rest takes, which are not counted.
    """
    pods, large = api.count(PODS), Fleet(workers=LARGE_JOB, first=api.version)
    api.load(large.job(jobs))
    namespace, job = place(jobs)
    await _until(lambda: _hosts(api, namespace, job) == LARGE_JOB, "the large job is published")
    await asyncio.sleep(QUIET)
    api.calls.clear()
    before, began = usage(pid).cpu, time.monotonic()
    api.update(MPI_JOBS, namespace, job, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}})
    await _until(lambda: _hosts(api, namespace, job) == 1, "the list is right")
    listed = time.monotonic() - began
    await _until(lambda: api.count(PODS) == pods + 2, "999 workers are gone")
    deleted = time.monotonic() - began
    await asyncio.sleep(QUIET)
    return listed, deleted, usage(pid).cpu - before - idle * (time.monotonic() - began)


def _hosts(api: SmallApi, namespace: str, job: str) -> int:
    script = api.read(CONFIG_MAPS, namespace, names.config_map(job))["data"][names.KEY_DISCOVER_HOSTS]
    found = parse_script(script)
    return len(found.hosts) if found else 0


def _writes(api: SmallApi) -> int:
    """Return the writes but Events and the Lease."""
    counted = api.calls.items()
    return sum(n for (verb, plural), n in counted if verb in ("PATCH", "DELETE") and plural != LEASES.plural)


async def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise Violated(f"it is not so that {what}")
        await asyncio.sleep(POLL)


@asynccontextmanager
async def _controller(api: SmallApi) -> AsyncIterator[int]:
    """Run a controller, and yield its process id once it is ready. Raises Violated if it ends or logs an error."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "mpijob_elastic", "controller", f"--kubeconfig={api.kubeconfig}"]
    command += [f"--health-port={port}", "--health-host=127.0.0.1"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "controller.log"
        process = spawn(command, log=log, environment={"PYTHONPATH": str(ROOT)})
        try:
            async with aiohttp.ClientSession() as session:
                while not await _is_ready(session, f"http://127.0.0.1:{port}/readyz"):
                    if process.poll() is not None:
                        raise Violated(f"the controller ended: {log.read_text()[-2000:]}")
                    await asyncio.sleep(POLL)
            yield process.pid
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)
        if wrong := [line for line in log.read_text().splitlines() if '"level": "error"' in line]:
            raise Violated(f"{len(wrong)} errors in its log, the first: {wrong[0]}")


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    with suppress(aiohttp.ClientError):
        async with session.get(url) as answer:
            return answer.status == 200
    return False

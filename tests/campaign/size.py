"""Size: what a controller costs beside 1,000, 10,000 and 100,000 workers, and how each cost grows.

The controller is a process of its own; the API server is a double over TLS, so what the real one
costs is not in the figures. It plays the kubelet too. The first controller finds the fleet as the
operator left it, and publishes the hosts of all jobs. The second starts beside a fleet at rest,
rests, follows events of kubelets, and takes a job of 1,000 workers in to one. Times need a machine
that does nothing else, CPU and memory do not.
"""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import yaml

from bench.processes import MIB, usage
from lab.ports import free_ports
from lab.processes import await_start, spawn
from lab.replicas import Replica
from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model.job import parse_script
from tests.campaign.part import Options, Outcome, above, say
from tests.campaign.size_fleet import WORKERS, Fleet, FleetApi, place
from tests.campaign.size_stored import stored

ROOT = Path(__file__).parents[2]
SIZES = (1_000, 10_000, 100_000)
LARGE_JOB = 1_000
# Events of kubelets, and how many in a second.
EVENTS, EVENTS_A_SECOND = 5_000, 250
# Seconds: without a write until a controller counts as at rest; for which its rest is measured; for
# any change.
QUIET, REST, PATIENCE = 5.0, 30.0, 600.0
POLL = 0.1
# A further worker costs at most so many times what it cost below; what must not grow, what it costs
# beside the smallest fleet. CPU only: a busy machine changes times more than a larger fleet does.
MOST_GROWTH = 1.5
# Memory at rest at most, in MiB and KiB a worker: small fleets find room in what the process holds
# anyway.
MEMORY, MEMORY_A_WORKER = 90.0, 1.5

READY, REST_MEMORY, PEAK = "start to ready, s", "memory at rest, MiB", "memory at most, MiB"
PUBLISH_CPU, START_CPU = "first start: CPU, s", "start to ready: CPU, s"
EVENTS_CPU, SCALE_IN_CPU = "CPU of 1,000 pod events, s", "1,000 → 1 workers: CPU, s"
GROWS, STAYS = (PUBLISH_CPU, START_CPU), (EVENTS_CPU, SCALE_IN_CPU)
# Figures by their words.
Cost = Mapping[str, float]


class Violated(Exception):
    """The controller did what it must not, or not what it must."""


def run(options: Options) -> Outcome:
    """Measure each size; with `minutes`, as many as begin in that time."""
    logging.getLogger("aiohttp.server").setLevel(
        logging.CRITICAL
    )  # it tells of callers that are gone
    found: dict[int, Cost] = {}
    violations: list[str] = []
    for workers, _ in zip(SIZES, options.runs(len(SIZES)), strict=False):
        try:
            found[workers] = asyncio.run(measure(workers, Random(options.seed)))
            figures = "\n".join(
                f"  {what}: {figure:,.4g}" for what, figure in found[workers].items()
            )
            say(f"{workers:,} workers\n{figures}")
        except Violated as wrong:
            violations.append(f"{workers:,} workers: {wrong}")
    if options.minutes is None:
        peak = asyncio.run(beside_stored(Random(options.seed)))
        say(f"beside what a tenant stores: {PEAK}: {peak:.0f}")
        violations += above(
            f"beside what a tenant stores: {PEAK}", peak, memory_limit("controller")
        )
    told = [
        f"{workers:,} workers: "
        + ", ".join(f"{what} {cost[what]:.3g}" for what in (READY, PEAK, EVENTS_CPU))
        for workers, cost in found.items()
    ]
    return Outcome(
        runs=len(found), violations=(*violations, *judged(found)), numbers="; ".join(told)
    )


def memory_limit(name: str) -> float:
    """Return the memory limit of a Deployment, controller or webhook, in MiB."""
    objects = yaml.safe_load_all((ROOT / "config" / "base" / f"{name}.yaml").read_text())
    [deployment] = [one for one in objects if one["kind"] == "Deployment"]
    limit: str = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][
        "memory"
    ]
    return float(limit.removesuffix("Mi"))


def judged(found: Mapping[int, Cost]) -> list[str]:
    """Return what costs or grows too much."""
    limit = memory_limit("controller")
    wrong, sizes = [], sorted(found)
    for size, cost in found.items():
        wrong += above(f"{size:,} workers: {PEAK}", cost[PEAK], limit)
        wrong += above(
            f"{size:,} workers: {REST_MEMORY}",
            cost[REST_MEMORY],
            MEMORY + size * MEMORY_A_WORKER / 1024,
        )
        for what in STAYS:
            wrong += above(
                f"{size:,} workers: {what}", cost[what], MOST_GROWTH * found[sizes[0]][what]
            )
            # Rest is left out, and a busy machine hides too much in it.
            wrong += [] if cost[what] > 0 else [f"{size:,} workers: {what} was not told from rest"]
    for what in GROWS:
        slopes = [
            (found[large][what] - found[small][what]) / (large - small)
            for small, large in pairwise(sizes)
        ]
        for size, (below, beyond) in zip(sizes[1:], pairwise(slopes), strict=False):
            wrong += above(f"{what}: for a worker beyond {size:,}", beyond, MOST_GROWTH * below)
    return wrong


async def beside_stored(random: Random) -> float:
    """Return the memory at most, in MiB, of a start beside what a tenant can store.

    Raises Violated.
    """
    async with FleetApi() as api:
        api.store(stored(api.revision, random))
        async with _controller(api) as pid:
            await asyncio.sleep(QUIET)
            return usage(pid).peak / MIB


async def measure(workers: int, random: Random) -> Cost:
    """Return the costs beside a fleet of so many workers. Raises Violated."""
    jobs = workers // WORKERS
    async with FleetApi() as api:
        fleet = Fleet(first=api.revision)
        api.store(made for number in range(jobs) for made in fleet.job(number))
        api.store(fleet.nodes(jobs))
        cost: dict[str, float] = {}
        began = time.monotonic()
        async with _controller(api) as pid:
            cost["first start: all host lists published, s"] = await _published(api, jobs) - began
            cost[PUBLISH_CPU] = usage(pid).cpu
        api.writes.clear()
        began = time.monotonic()
        async with _controller(api) as pid:
            cost[READY], start = time.monotonic() - began, usage(pid)
            await _until(
                lambda: any("/leases/" in path for _, path in api.writes),
                "the second controller leads",
            )
            cost["start to leading, s"], cost[START_CPU] = time.monotonic() - began, start.cpu
            await asyncio.sleep(QUIET)
            before = usage(pid)
            await asyncio.sleep(REST)
            rest = usage(pid)
            idle = (rest.cpu - before.cpu) / REST
            cost[REST_MEMORY], cost["CPU at rest, s a minute"] = rest.resident / MIB, 60 * idle
            began = time.monotonic()
            await _send_events(api, jobs, random)
            events_cpu = usage(pid).cpu - rest.cpu - idle * (time.monotonic() - began)
            cost[EVENTS_CPU] = events_cpu * 1_000 / EVENTS
            if wrong := api.written():
                raise Violated(f"writes at rest: {wrong}")
            cost |= await _scale_in(api, jobs, pid, idle)
            cost[PEAK] = usage(pid).peak / MIB
    return cost


async def _published(api: FleetApi, jobs: int) -> float:
    """Wait until all jobs have their list and nothing more is written; return when the last write was seen."""
    written, since = 0, time.monotonic()
    while (
        len({path for path in api.written() if "/configmaps/" in path}) < jobs
        or time.monotonic() < since + QUIET
    ):
        if written != (written := len(api.written())):
            since = time.monotonic()
        if time.monotonic() > since + PATIENCE:
            raise Violated(f"not all jobs are published after {written} writes")
        await asyncio.sleep(POLL)
    return since


async def _send_events(api: FleetApi, jobs: int, random: Random) -> None:
    """Send statuses as kubelets write them, in which nothing matters to us."""
    began = time.monotonic()
    for number in range(EVENTS):
        await asyncio.sleep(max(0.0, began + number / EVENTS_A_SECOND - time.monotonic()))
        namespace, job = place(random.randrange(jobs))
        path = PODS.path(namespace, names.worker(job, random.randrange(WORKERS)))
        pod = api.objects[path]
        pod["status"]["containerStatuses"][0]["imageID"] = f"example/train@sha256:{number:064x}"
        api.put(path, pod)
    await asyncio.sleep(QUIET)


async def _scale_in(api: FleetApi, jobs: int, pid: int, idle: float) -> Cost:
    """Take a large job in. idle: CPU seconds that a second of rest takes, which are not counted."""
    api.load(Fleet(workers=LARGE_JOB, first=api.revision).job(jobs))
    namespace, job = place(jobs)
    config = CONFIG_MAPS.path(namespace, names.config_map(job))

    def hosts() -> int:
        script = parse_script(api.objects[config]["data"][names.KEY_DISCOVER_HOSTS])
        return len(script.hosts) if script else 0

    await _until(lambda: hosts() == LARGE_JOB, "the large job is published")
    await asyncio.sleep(QUIET)
    api.writes.clear()
    before, began = usage(pid).cpu, time.monotonic()
    await api.update(
        MPI_JOBS.path(namespace), job, spec={"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}
    )
    await _until(lambda: hosts() == 1, "the list is right")
    listed = time.monotonic() - began
    await _until(
        lambda: len(api.pods(namespace, job)) == 2, "999 workers are gone"
    )  # a launcher and a worker stay
    deleted = time.monotonic() - began
    await asyncio.sleep(QUIET)
    return {
        "1,000 → 1 workers: host list right, s": listed,
        "1,000 → 1 workers: last pod gone, s": deleted,
        SCALE_IN_CPU: usage(pid).cpu - before - idle * (time.monotonic() - began),
        "1,000 → 1 workers: writes but Events": len(api.written()),
    }


async def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise Violated(f"it is not so that {what}")
        await asyncio.sleep(POLL)


@asynccontextmanager
async def _controller(api: FleetApi) -> AsyncIterator[int]:
    """Run a controller, and yield its process id once it is ready.

    Raises LabError if it ends or does not become ready, Violated if it logs an error.
    """
    [port] = free_ports(1)
    command = [
        sys.executable,
        "-m",
        "mpijob_elastic",
        "controller",
        f"--kubeconfig={api.kubeconfig}",
    ]
    command += [f"--health-port={port}", "--health-host=127.0.0.1"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "controller.log"
        process = spawn(command, log=log, environment={"PYTHONPATH": str(ROOT)})
        replica = Replica(process=process, log=log, health=f"http://127.0.0.1:{port}")
        try:
            ready = partial(
                await_start, process, replica.ready, name="controller", log=log, within=PATIENCE
            )
            await asyncio.to_thread(ready)
            yield process.pid
        finally:
            await asyncio.to_thread(replica.terminate)
        if wrong := [line for line in log.read_text().splitlines() if '"level": "error"' in line]:
            raise Violated(f"{len(wrong)} errors in its log, the first: {wrong[0]}")

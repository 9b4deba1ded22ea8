"""Failovers: the leader is killed or frozen, again and again, while users resize jobs.

Three controllers run as processes, each with a token of its own, so that the API server's audit log
tells which of them made a write. A killed leader is replaced, a frozen one wakes up and goes on.
Another must lead within `LONGEST` seconds, nobody may write without the Lease, no safety rule may
break, and every job must converge.
"""

import asyncio
import itertools
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from random import Random
from signal import SIGCONT, SIGSTOP

from bench.audit import Tail
from lab.cluster import Cluster
from lab.install import Installed
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.labs import served, user
from tests.campaign.lease_holders import acts, holder, strays, taken_at
from tests.campaign.part import Options, Outcome, above, say
from tests.campaign.sequence_rules import Version, broken, record
from tests.lab.controllers import awaited_leader
from tests.lab.job import Job
from tests.lab.waiting import create_namespace

# A run is a shift: new jobs, and these faults in an order of its own. Ten shifts have fifty kills.
SHIFTS = 10
FAULTS = ("kill",) * 5 + ("freeze", "doze")
CONTROLLERS, JOBS, MOST_WORKERS = 3, 6, 4
NAMESPACE = "campaign"
# Seconds from the end of a leader until another has the Lease. Longer than `GIVEN_UP` counts as
# never.
LONGEST, GIVEN_UP = 17.0, 60.0


@dataclass(kw_only=True)
class Tally:
    """The results so far. took: seconds of each takeover, by fault. violations: as `Outcome` has them."""

    took: dict[str, list[float]] = field(default_factory=lambda: {"kill": [], "freeze": []})
    resizes: int = 0
    violations: list[str] = field(default_factory=list)


def run(options: Options) -> Outcome:
    """Run shifts."""
    tally = Tally()
    with _surroundings() as (cluster, controllers):
        tail = Tail(cluster.audit_log)
        shifts = asyncio.run(_work(cluster, controllers, tail, tally, options))
        writes = tail.writes()
    tally.violations += [f"a write without the Lease: {write}" for write in strays(writes)]
    takeovers = [
        f"{len(took)} {fault}s: takeover {statistics.median(took):.1f} s (median), {max(took):.1f} s at most"
        for fault, took in tally.took.items()
        if took
    ]
    load = f"{tally.resizes:,} resizes, {len(acts(writes)):,} writes of controllers"
    return Outcome(
        runs=shifts, violations=tuple(tally.violations), numbers="; ".join([*takeovers, load])
    )


@contextmanager
def _surroundings() -> Iterator[tuple[Cluster, "Controllers"]]:
    with (
        served(nodes=3) as (cluster, installed, _),
        Operator.start(cluster, qps=0, flags=["--threadiness=8"]),
        ExitStack() as stack,
    ):
        yield cluster, Controllers(cluster=cluster, installed=installed, stack=stack)


@dataclass(kw_only=True)
class Controllers:
    """The replicas that run until the stack ends."""

    cluster: Cluster
    installed: Installed
    stack: ExitStack
    running: list[Controller] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def fill(self) -> list[str]:
        """Start what is missing; return what ended though nobody ended it."""
        ended = [one for one in self.running if one.process.poll() is not None]
        for one in ended:
            self.running.remove(one)
        while len(self.running) < CONTROLLERS:
            self.running.append(
                self.stack.enter_context(Controller.start(self.cluster, self._with_own_token()))
            )
        return [
            f"a controller ended with exit code {one.process.returncode}: {one.log}"
            for one in ended
        ]

    def kill(self, leader: Controller) -> None:
        """Kill the leader."""
        self.running.remove(leader)
        leader.kill()

    def _with_own_token(self) -> Installed:
        shared = self.cluster.service_account_kubeconfig(names.NAMESPACE, names.CONTROLLER)
        own = shared.with_name(f"{shared.name}.{next(self._numbers)}")
        shutil.copy(shared, own)
        return replace(self.installed, controller_kubeconfig=own)


async def _work(
    cluster: Cluster, controllers: Controllers, tail: Tail, tally: Tally, options: Options
) -> int:
    shifts = 0
    async with await user(cluster) as client:
        create_namespace(cluster, NAMESPACE)
        for number in options.runs(SHIFTS):
            await asyncio.to_thread(controllers.fill)
            shift = Shift(
                client=client,
                controllers=controllers,
                tail=tail,
                tally=tally,
                random=Random(f"{options.seed} {number}"),
                jobs=[
                    Job(client=client, namespace=NAMESPACE, name=f"shift-{number}-{one}")
                    for one in range(JOBS)
                ],
            )
            await shift.work()
            shifts += 1
            say(f"failovers: after {shifts} shifts {tally}")
    return shifts


@dataclass(frozen=True, kw_only=True)
class Shift:
    """Jobs that are resized while leaders fall."""

    client: ApiWriter
    controllers: Controllers
    tail: Tail
    tally: Tally
    random: Random
    jobs: list[Job]

    async def work(self) -> None:
        """Work, and judge what was written."""
        versions: list[Version] = []
        watching = asyncio.create_task(record(self.client, NAMESPACE, versions))
        for job in self.jobs:
            await job.create(replicas=1, annotations={names.DRAIN_TIMEOUT: "3s"})
        async with asyncio.TaskGroup() as group:
            users = [
                group.create_task(self._resize(job, Random(self.random.random())))
                for job in self.jobs
            ]
            for fault in self.random.sample(FAULTS, len(FAULTS)):
                await asyncio.sleep(self.random.uniform(0, 3))
                await self._suffer(fault)
                self.tally.violations += await asyncio.to_thread(self.controllers.fill)
            for one in users:
                one.cancel()
        for job in self.jobs:
            await self._converge(job)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        deleted = {
            act.uid for act in acts(self.tail.writes()) if act.uid
        }  # kwok, too, deletes pods
        for job in self.jobs:
            self.tally.violations += broken(versions, job=job.name, edits=set(), deleted=deleted)
            await job.delete()

    async def _resize(self, job: Job, random: Random) -> None:
        while True:
            with suppress(errors.Unreachable):  # a busy API server; users try again
                await job.scale(random.randint(1, MOST_WORKERS))
                self.tally.resizes += 1
            await asyncio.sleep(random.uniform(0.5, 3))

    async def _converge(self, job: Job) -> None:
        try:
            await job.settled((await job.state()).replicas)
        except AssertionError as error:
            self.tally.violations.append(str(error))
        except errors.Unreachable:
            await self._converge(job)

    async def _suffer(self, fault: str) -> None:
        leader = await asyncio.to_thread(awaited_leader, self.controllers.running)
        before, at = holder(self.tail.writes()), time.time()
        if fault == "kill":
            self.controllers.kill(leader)
            await self._taken(fault, before, at)
            return
        leader.signal(SIGSTOP)
        if fault == "freeze":
            await self._taken(fault, before, at)
            await asyncio.sleep(self.random.uniform(0, 5))
        else:  # it wakes up about when its Lease runs out
            await asyncio.sleep(self.random.uniform(8, 16))
        leader.signal(SIGCONT)
        await asyncio.sleep(3)

    async def _taken(self, fault: str, before: str, at: float) -> None:
        """Wait until another holds the Lease."""
        while (taken := taken_at(self.tail.writes(), before=before, since=at)) is None:
            if time.time() > at + GIVEN_UP:
                self.tally.violations.append(
                    f"nobody took over within {GIVEN_UP:.0f} s of a {fault}"
                )
                return
            await asyncio.sleep(0.5)
        self.tally.took[fault].append(taken - at)
        self.tally.violations += above(
            f"seconds of a takeover after a {fault}", taken - at, LONGEST
        )

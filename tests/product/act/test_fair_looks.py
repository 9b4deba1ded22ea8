"""Looks of a tenant whose neighbour has hundreds of shells that hang, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import launcher_execs, worker_probes
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import LookIntoLauncher, ProbeWorkers
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, NOW, config, job, launcher, pods, ref, worker
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, DirectShells, Message, Shells
from tests.product.kube.virtual_time import run

HUNG = 320
# Seconds that an exec takes in a shell that does not hang.
TAKES = 0.05
JobName = tuple[str, str]


async def hangs_elsewhere(asked: Asked) -> AsyncIterator[Message]:
    """Every shell hangs, except in the namespace `other` and in jobs of that name."""
    await asyncio.sleep(TAKES if "other" in asked.namespace + asked.pod else 3600)
    yield STDOUT, "busy\n"
    yield STATUS, SUCCESS


def leaving(namespace: str, name: str, count: int) -> JobView:
    """A job of which so many workers were told to leave a second ago."""
    workers = tuple(
        replace(worker(index), ref=ref(f"{name}-worker-{index}", uid=f"{namespace}/{name}/{index}"))
        for index in range(count + 1)
    )
    left = {each.name: Left(pod=pod_fingerprint(each.ref.uid), at=NOW - 1) for each in workers[1:]}
    view = job(1, workers=workers, config=config(pods(0), memory=Memory(left=left)))
    return replace(view, namespace=namespace, ref=replace(view.ref, name=name))


async def answers(neighbours: list[JobView], mine: JobView, *, looks: int = 3) -> list[float]:
    """Return when each look into my leaving worker is answered, while the neighbours are looked at all the time."""
    loop = asyncio.get_running_loop()
    jobs = {(view.namespace, view.name): view for view in [*neighbours, mine]}
    mine_is, times = (mine.namespace, mine.name), list[float]()

    def begin(name: JobName) -> None:
        prober.begin(jobs[name], ProbeWorkers(workers=jobs[name].workers[1:]))

    def wake(namespace: str, name: str) -> None:
        if (namespace, name) == mine_is:
            times.append(round(loop.time() - began, 2))
        loop.call_later(0.5, begin, (namespace, name))

    prober = Prober(
        DirectShells(Shells(hangs_elsewhere)), metrics=Metrics(CollectorRegistry()), now=loop.time, wake=wake
    )
    for view in neighbours:
        begin((view.namespace, view.name))
    await asyncio.sleep(10)
    began = loop.time()
    begin(mine_is)
    async with asyncio.timeout(600):
        while len(times) < looks:
            await asyncio.sleep(0.01)
    await prober.close()
    return times


@pytest.mark.parametrize(
    ("neighbours", "mine"),
    [
        ([leaving("tenant", "j", HUNG)], leaving("other", "j", 1)),
        ([leaving("tenant", f"j{index}", HUNG // 16) for index in range(16)], leaving("other", "j", 1)),
        ([leaving(f"tenant{index}", "j", HUNG // 8) for index in range(8)], leaving("other", "j", 1)),
        ([leaving("tenant", "j", HUNG)], leaving("tenant", "other", 1)),
    ],
    ids=["one job", "16 jobs", "8 namespaces", "a job of the same namespace"],
)
def test_the_neighbours_hung_shells_delay_nobody(neighbours: list[JobView], mine: JobView) -> None:
    alone, beside = run(answers([], mine)), run(answers(neighbours, mine))
    assert beside == pytest.approx(alone, abs=1 / worker_probes.LEAVING_A_SECOND + TAKES)


def test_hung_launchers_delay_nobody() -> None:
    async def answered() -> float:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake(namespace: str, name: str) -> None:
            if namespace == "other":
                woken.set()
            else:
                begin(namespace, name)

        def begin(namespace: str, name: str) -> None:
            found = replace(launcher(), ref=ref(f"{namespace}-{name}"), started_at=LONG_AGO)
            view = job(1)
            loop.call_soon(
                execs.begin,
                replace(view, namespace=namespace, ref=replace(view.ref, name=name)),
                LookIntoLauncher(launcher=found, about=frozenset({"a reason"})),
            )

        execs = Execs(DirectShells(Shells(hangs_elsewhere)), now=loop.time, wake=wake)
        for index in range(HUNG):
            begin("tenant", f"j{index}")
        await asyncio.sleep(10)
        began = loop.time()
        begin("other", "j")
        await woken.wait()
        await execs.close()
        return loop.time() - began

    assert run(answered()) <= TAKES + 2 / launcher_execs.MOST_A_SECOND


def test_a_worker_whose_look_hangs_is_looked_at_seldom() -> None:
    """A controller's own schedule for a minute: a look, its end after the timeout, the next plan."""

    async def asked() -> list[float]:
        loop = asyncio.get_running_loop()
        shells, view = Shells(hangs_elsewhere), leaving("tenant", "j", 1)
        prober = Prober(
            DirectShells(shells),
            metrics=Metrics(CollectorRegistry()),
            now=lambda: NOW + loop.time(),
            wake=lambda *_: None,
        )
        while loop.time() < 58:  # then its drain-timeout is over
            occasion = view.config.occasion("j-worker-1") if view.config else ""
            workers = tuple(replace(each, probe=prober.seen(each.ref.key, occasion)) for each in view.workers)
            for look in decide(replace(view, workers=workers), now=NOW + loop.time()).looks:
                assert isinstance(look, ProbeWorkers)
                prober.begin(view, look)
            await asyncio.sleep(0.25)
        await prober.close()
        return [asked.at for asked in shells.asked]

    times = run(asked())
    assert [round(at) for at in times[:4]] == [0, 3, 6, 10]
    assert len(times) == 6, "without a back-off it would be 19"
    assert all(later - sooner <= 30.5 for sooner, later in pairwise(times))

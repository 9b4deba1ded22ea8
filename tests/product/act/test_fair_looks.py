"""Looks of a tenant whose neighbour has hundreds of shells that hang, in virtual time."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import launcher_execs, worker_probes
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.decide.actions import LookIntoLauncher, ProbeWorkers
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, NOW, but, config, job, launcher, pods, ref, worker
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, DirectShells, Message, Shells
from tests.product.kube.virtual_time import run

HUNG = 320
# Seconds that an exec takes in a shell that does not hang.
TAKES = 0.05


async def hangs_elsewhere(asked: Asked) -> AsyncIterator[Message]:
    """Every shell hangs, except in the namespace `other` and in jobs of that name."""
    await asyncio.sleep(TAKES if "other" in asked.namespace + asked.pod else 3600)
    yield STDOUT, "busy\n"
    yield STATUS, SUCCESS


def named(view: JobView, namespace: str, name: str) -> JobView:
    return but(view, namespace=namespace, ref=but(view.ref, name=name))


def leaving(namespace: str, name: str, count: int) -> JobView:
    """A job of which so many workers were told to leave a second ago."""
    workers = tuple(
        but(worker(index), ref=ref(f"{name}-worker-{index}", uid=f"{namespace}/{name}/{index}"))
        for index in range(count + 1)
    )
    left = {each.name: Left(pod=pod_fingerprint(each.ref.uid), at=NOW - 1) for each in workers[1:]}
    return named(
        job(1, workers=workers, config=config(pods(0), memory=Memory(left=left))), namespace, name
    )


async def answers(neighbours: list[JobView], mine: JobView, *, looks: int = 3) -> list[float]:
    """Return when each look into my leaving worker is answered, while the neighbours are looked at all the time."""
    loop = asyncio.get_running_loop()
    jobs = {(view.namespace, view.name): view for view in [*neighbours, mine]}
    times = list[float]()

    def begin(view: JobView) -> None:
        prober.begin(view, ProbeWorkers(workers=view.workers[1:]))

    def wake(namespace: str, name: str) -> None:
        if jobs[namespace, name] is mine:
            times.append(round(loop.time() - began, 2))
        loop.call_later(0.5, begin, jobs[namespace, name])

    shells, metrics = DirectShells(Shells(hangs_elsewhere)), Metrics(CollectorRegistry())
    prober = Prober(shells, metrics=metrics, now=loop.time, wake=wake)
    for view in neighbours:
        begin(view)
    await asyncio.sleep(10)
    began = loop.time()
    begin(mine)
    async with asyncio.timeout(600):
        while len(times) < looks:
            await asyncio.sleep(0.01)
    await prober.close()
    return times


@pytest.mark.parametrize(
    ("neighbours", "mine"),
    [
        ([leaving("tenant", "j", HUNG)], leaving("other", "j", 1)),
        (
            [leaving("tenant", f"j{index}", HUNG // 16) for index in range(16)],
            leaving("other", "j", 1),
        ),
        (
            [leaving(f"tenant{index}", "j", HUNG // 8) for index in range(8)],
            leaving("other", "j", 1),
        ),
        ([leaving("tenant", "j", HUNG)], leaving("tenant", "other", 1)),
    ],
    ids=["one job", "16 jobs", "8 namespaces", "a job of the same namespace"],
)
def test_the_neighbours_hung_shells_delay_nobody(neighbours: list[JobView], mine: JobView) -> None:
    alone, beside = run(answers([], mine)), run(answers(neighbours, mine))
    assert beside == pytest.approx(alone, abs=1 / worker_probes.LEAVING_A_SECOND + TAKES)


def test_hung_launchers_delay_nobody() -> None:
    async def answered() -> float:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake(namespace: str, name: str) -> None:
            if namespace == "other":
                woken.set()
            else:
                loop.call_soon(begin, namespace, name)

        def begin(namespace: str, name: str) -> None:
            found = but(launcher(), ref=ref(f"{namespace}-{name}"), started_at=LONG_AGO)
            look = LookIntoLauncher(launcher=found, about=frozenset({"a reason"}))
            execs.begin(named(job(1), namespace, name), look)

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

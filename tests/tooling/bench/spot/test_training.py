"""From what the control plane shows to steps: delivery, mounts, driver and restarts together."""

import math
from collections.abc import Collection
from dataclasses import replace
from random import Random

from bench.spot.costs import Costs
from bench.spot.training import Training
from bench.spot.world import World
from mpijob_elastic import names

COSTS = Costs(step=1, commit=10, checkpoint=50, poll=1, reset=2, start=3, elastic_timeout=60)
WORKERS = [names.worker("train", index) for index in range(2)]


def a_world(*hosts: str, running: Collection[str] = WORKERS, touch: str = "", started: bool = True) -> World:
    return World(
        running={pod: f"uid of {pod}" for pod in running},
        pods=(*running, "train-launcher"),
        script=names.discover_hosts(list(hosts), slots=1),
        hostfile=tuple(WORKERS),
        launcher="uid",
        started=started,
        touch=touch,
    )


BOTH, FIRST = a_world(*WORKERS), a_world(WORKERS[0], touch="1")


class Run:
    def __init__(self, *, elastic: bool = True) -> None:
        self.training = Training(costs=COSTS, size=2, elastic=elastic, chance=Random(1))
        self.now = 0.0

    def until(self, at: float, world: World, *, lost: Collection[str] = ()) -> None:
        while self.now <= at:
            self.training.tick(self.now, world, lost=lost)
            self.now = round(self.now + 0.25, 6)


def test_a_launcher_is_delivered_once_every_host_of_its_hostfile_runs() -> None:
    training = Run().training
    assert not training.delivered(replace(BOTH, launcher=""))
    assert not training.delivered(replace(BOTH, hostfile=()))
    assert not training.delivered(a_world(running=WORKERS[:1]))
    assert training.delivered(replace(BOTH, started=False))
    assert training.delivered(replace(BOTH, hostfile=(names.host(WORKERS[0], 1),)))


def test_what_nothing_keeps_waiting_is_owed() -> None:
    training = Run().training
    assert training.owed(World(), machines=0)
    assert training.owed(replace(FIRST, running={}, started=False), machines=1)
    assert training.owed(replace(BOTH, started=False), machines=2)
    assert not training.owed(BOTH, machines=2)
    assert not training.owed(BOTH, machines=3)
    assert not training.owed(a_world(running=WORKERS[:1], started=False), machines=1)


def test_nothing_trains_before_the_launcher_runs() -> None:
    run = Run()
    run.until(30, replace(BOTH, started=False))
    assert list(run.training.ring) == []
    assert run.training.tally.useful(30) == 0


def test_a_touched_launcher_sees_a_change_at_once_and_the_leaver_is_not_killed() -> None:
    run = Run()
    run.until(16, BOTH)
    run.until(30, FIRST)
    assert list(run.training.ring) == WORKERS[:1]
    assert run.training.killed == 0
    assert run.training.tally.lost == 0


def test_an_untouched_launcher_sees_it_late() -> None:
    run = Run()
    run.until(16, BOTH)
    untouched = replace(FIRST, touch="")
    run.until(30, untouched)
    assert list(run.training.ring) == WORKERS
    assert 60 <= run.training.next_change(run.now, untouched) <= 90
    run.until(101, untouched)
    assert list(run.training.ring) == WORKERS[:1]


def test_a_worker_that_vanishes_is_a_rank_killed() -> None:
    run = Run()
    run.until(16, BOTH)
    run.until(30, a_world(WORKERS[0], running=WORKERS[:1], touch="1"))
    assert run.training.killed == 1
    assert run.training.tally.lost > 0


def test_a_rank_that_dies_in_a_pod_that_runs_is_one_too() -> None:
    run = Run()
    run.until(16, BOTH)
    run.until(30, BOTH, lost=WORKERS[1:])
    assert run.training.killed == 1
    assert not run.training.settled(BOTH)


def test_all_is_settled_when_every_worker_trains_and_nothing_is_coming() -> None:
    run = Run()
    assert not run.training.settled(BOTH)
    run.until(30, BOTH)
    assert run.training.settled(BOTH)
    assert run.training.next_change(run.now, BOTH) == math.inf
    assert not run.training.settled(a_world(*WORKERS, running=WORKERS[:1]))


def test_a_job_that_fails_begins_at_its_checkpoint() -> None:
    run = Run(elastic=False)
    run.until(80, BOTH)
    run.until(81, a_world(running=WORKERS[:1]))
    assert run.training.failed
    assert run.training.failures == [f"{WORKERS[1]} was lost"]
    run.training.again()
    assert not run.training.failed
    run.until(120, BOTH)
    ring_at = 81.25 + COSTS.reset + COSTS.start
    assert run.training.tally.useful(120) == 50 - (COSTS.reset + COSTS.start) + (120 - ring_at)


def test_the_course_is_written_down_at_each_change() -> None:
    run = Run()
    run.until(16, BOTH)
    run.until(40, FIRST)
    run.training.close(41)
    assert [point.world for point in run.training.points] == [0, 2, 0, 1, 1]
    useful = [point.useful for point in run.training.points]
    assert useful == sorted(useful)
    assert run.training.points[-1].at == 41

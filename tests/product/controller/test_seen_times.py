"""Waits by two clocks: a wall clock may step, and differs from machine to machine; a monotonic clock does neither."""

from dataclasses import dataclass, replace

import pytest

from mpijob_elastic.controller.seen_times import SeenTimes
from mpijob_elastic.decide import derive, drain, host_list
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model.job import JobView, Probe
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import NOW, config, job, pods, shown, worker

POD = "j-worker-2"
TIMEOUT = 60.0
STEP = 0.5
MEMORY = Memory(left={POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=NOW)}, removed_at=NOW)
# A rank trains in the third of three workers, of which two are wanted: it left the list at NOW.
DRAINING = shown(job(2, workers=(worker(0), worker(1), worker(2)), config=config(pods(0, 1), memory=MEMORY)), at=NOW)
# One of three workers left the list at NOW, and is wanted again.
JOINING = shown(job(3, config=config(pods(0, 1), memory=Memory(removed_at=NOW))), at=NOW)


@dataclass
class Clocks:
    """wall: seconds since the epoch, as the process believes; real: seconds since the drain began."""

    wall: float = NOW
    real: float = 0.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.real += seconds


def look(view: JobView, times: SeenTimes, clocks: Clocks) -> list[str]:
    """Look at the job as the controller does; return the outcomes of deletions."""
    busy = Probe(busy_seen=True, asked_at=clocks.wall, busy_at=clocks.wall)
    workers = tuple(replace(one, probe=busy) for one in view.workers)
    state = derive(times.timed(replace(view, workers=workers)), now=clocks.wall)
    times.watch(state)
    return [removal.outcome for removal in drain.leave(state).removals]


def until_deleted(times: SeenTimes, clocks: Clocks) -> float:
    while not look(DRAINING, times, clocks):
        clocks.pass_by(STEP)
    return clocks.real


@pytest.mark.parametrize("jump", [0.0, 56.0, 3600.0, 1e6])
def test_a_clock_that_steps_forward_cuts_no_drain(jump: float) -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    while clocks.real < 5.0:
        assert look(DRAINING, times, clocks) == []
        clocks.pass_by(STEP)
    clocks.wall += jump
    assert until_deleted(times, clocks) == TIMEOUT


@pytest.mark.parametrize("ahead", [0.0, 4.0, 56.0, 3600.0])
def test_a_new_leader_waits_for_the_whole_timeout(ahead: float) -> None:
    """It may be longer so, never shorter: what the leader before has seen is not known."""
    clocks = Clocks(wall=NOW + 5.0 + ahead, real=5.0)
    assert until_deleted(SeenTimes(clock=lambda: clocks.real), clocks) == 5.0 + TIMEOUT


def test_another_drain_of_the_same_worker_begins_from_the_start() -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    look(DRAINING, times, clocks)
    clocks.pass_by(30.0)
    assert times.timed(DRAINING).drains_seen == {(POD, NOW): 30.0}
    look(shown(DRAINING, at=NOW + 30.0), times, clocks)
    assert times.timed(DRAINING).drains_seen == {(POD, NOW + 30.0): 0.0}


def test_what_is_over_is_forgotten() -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    look(DRAINING, times, clocks)
    look(job(2), times, clocks)
    assert times.timed(DRAINING).drains_seen == {}
    look(DRAINING, times, clocks)
    times.forget("default", "j")
    assert times.timed(DRAINING).drains_seen == {}


def until_added(times: SeenTimes, clocks: Clocks, view: JobView = JOINING) -> float:
    while host_list.following(derive(times.timed(view), now=clocks.wall)).hosts != pods(0, 1, 2):
        clocks.pass_by(STEP)
    return clocks.real


@pytest.mark.parametrize("jump", [0.0, 2.5, 56.0, 3600.0, 1e6])
def test_a_clock_that_steps_forward_hurries_no_change_after_another(jump: float) -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    times.timed(JOINING)
    clocks.pass_by(STEP)
    clocks.wall += jump
    assert until_added(times, clocks) == SETTLE


@pytest.mark.parametrize("ahead", [0.0, 2.5, 3600.0])
def test_a_new_leader_lets_the_driver_follow_the_last_change(ahead: float) -> None:
    clocks = Clocks(wall=NOW + 1.0 + ahead, real=1.0)
    assert until_added(SeenTimes(clock=lambda: clocks.real), clocks) == 1.0 + SETTLE


def test_a_touch_begins_the_wait_again_and_its_repetition_does_not() -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    times.timed(JOINING)
    clocks.pass_by(1.0)
    touched = shown(JOINING, at=NOW + 1.0)
    times.timed(touched)
    clocks.pass_by(1.0)
    assert touched.launcher is not None
    again = replace(touched.launcher, refreshed=f"{touched.launcher.refreshed}+1")
    assert until_added(times, clocks, replace(touched, launcher=again)) == 1.0 + SETTLE


def test_missing_pods_are_seen_for_as_long_as_they_are_missing() -> None:
    clocks = Clocks()
    times = SeenTimes(clock=lambda: clocks.real)
    few = job(3, workers=(worker(0), worker(1)))
    seen = []
    for view in (few, few, job(3), few):
        look(view, times, clocks)
        clocks.pass_by(STEP)
        seen.append((times.timed(view).drains_seen or {}).get((POD, 0.0)))
    assert seen == [STEP, 2 * STEP, None, STEP]

"""Waits by two clocks: a wall clock may step, and differs from machine to machine; a monotonic clock does neither."""

import pytest

from mpijob_elastic.controller.per_job_state import SeenTimes
from mpijob_elastic.decide import derive, drain, host_list
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.observe.watching import JobKey
from tests.builders import NOW, but, config, job, pods, shown, worker

POD = "j-worker-2"
TIMEOUT = 60.0
STEP = 0.5
MEMORY = Memory(left={POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=NOW)}, removed_at=NOW)
# A rank trains in the third of three workers, of which two are wanted: it left the list at NOW.
DRAINING = shown(
    job(2, workers=(worker(0), worker(1), worker(2)), config=config(pods(0, 1), memory=MEMORY)),
    at=NOW,
)
# One of three workers left the list at NOW, and is wanted again.
JOINING = shown(job(3, config=config(pods(0, 1), memory=Memory(removed_at=NOW))), at=NOW)


class Clocks:
    """A process's clocks. wall: seconds since the epoch, as it believes; real: seconds since the drain began."""

    def __init__(self, *, wall: float = NOW, real: float = 0.0) -> None:
        self.wall, self.real = wall, real
        self.times = SeenTimes(clock=lambda: self.real)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.real += seconds

    def look(self, view: JobView) -> list[str]:
        """Look at the job as the controller does; return the outcomes of deletions."""
        busy = Probe(busy_seen=True, asked_at=self.wall, busy_at=self.wall)
        workers = tuple(but(one, probe=busy) for one in view.workers)
        state = derive(self.times.timed(but(view, workers=workers)), now=self.wall)
        self.times.watch(state)
        return [removal.outcome for removal in drain.leave(state).removals]

    def until_deleted(self) -> float:
        while not self.look(DRAINING):
            self.pass_by(STEP)
        return self.real

    def until_added(self, view: JobView = JOINING) -> float:
        while host_list.following(derive(self.times.timed(view), now=self.wall)).hosts != pods(
            0, 1, 2
        ):
            self.pass_by(STEP)
        return self.real

    def drains(self, view: JobView = DRAINING) -> dict[tuple[str, float], float]:
        return dict(self.times.timed(view).drains_seen or {})


@pytest.mark.parametrize("jump", [0.0, 2.5, 56.0, 3600.0, 1e6])
def test_a_clock_that_steps_forward_cuts_no_drain_and_hurries_no_change_after_another(
    jump: float,
) -> None:
    clocks = Clocks()
    while clocks.real < 5.0:
        assert clocks.look(DRAINING) == []
        clocks.pass_by(STEP)
    clocks.wall += jump
    assert clocks.until_deleted() == TIMEOUT
    clocks = Clocks()
    clocks.times.timed(JOINING)
    clocks.pass_by(STEP)
    clocks.wall += jump
    assert clocks.until_added() == SETTLE


@pytest.mark.parametrize("ahead", [0.0, 2.5, 4.0, 56.0, 3600.0])
def test_a_new_leader_waits_for_the_whole_time(ahead: float) -> None:
    """It may be longer so, never shorter: what the leader before has seen is not known."""
    assert Clocks(wall=NOW + 5.0 + ahead, real=5.0).until_deleted() == 5.0 + TIMEOUT
    assert Clocks(wall=NOW + 1.0 + ahead, real=1.0).until_added() == 1.0 + SETTLE


def test_another_drain_of_the_same_worker_begins_from_the_start() -> None:
    clocks = Clocks()
    clocks.look(DRAINING)
    clocks.pass_by(30.0)
    assert clocks.drains() == {(POD, NOW): 30.0}
    clocks.look(shown(DRAINING, at=NOW + 30.0))
    assert clocks.drains() == {(POD, NOW + 30.0): 0.0}


def test_what_is_over_is_forgotten() -> None:
    clocks = Clocks()
    clocks.look(DRAINING)
    clocks.look(job(2))
    assert clocks.drains() == {}
    clocks.look(DRAINING)
    clocks.times.forget(JobKey("default", "j"))
    assert clocks.drains() == {}


def test_a_touch_begins_the_wait_again_and_its_repetition_does_not() -> None:
    clocks = Clocks()
    clocks.times.timed(JOINING)
    clocks.pass_by(1.0)
    touched = shown(JOINING, at=NOW + 1.0)
    clocks.times.timed(touched)
    clocks.pass_by(1.0)
    assert touched.launcher is not None
    again = but(touched.launcher, refreshed=f"{touched.launcher.facts.refreshed}+1")
    assert clocks.until_added(but(touched, launcher=again)) == 1.0 + SETTLE


def test_missing_pods_are_seen_for_as_long_as_they_are_missing() -> None:
    clocks, seen = Clocks(), []
    few = job(3, workers=(worker(0), worker(1)))
    for view in (few, few, job(3), few):
        clocks.look(view)
        clocks.pass_by(STEP)
        seen.append(clocks.drains(view).get((POD, 0.0)))
    assert seen == [STEP, 2 * STEP, None, STEP]


# Its user suspends a job of two, and the API server refuses each change of its host list.
STOPPING = job(2, refused={WriteConfig: "no"}, suspended_by="its annotation")


def test_what_hinders_a_job_counts_from_when_this_process_first_saw_it() -> None:
    """Not by a wall clock, and not from what hindered it before a drain could be over."""
    clocks = Clocks()

    def hindered(view: JobView) -> float | None:
        seen = clocks.times.timed(view)
        clocks.times.watch(derive(seen, now=clocks.wall))
        return seen.hindered_for

    assert hindered(STOPPING) is None
    assert hindered(STOPPING) == 0.0
    clocks.pass_by(7.0)
    clocks.wall += 3600.0
    assert hindered(STOPPING) == 7.0
    assert hindered(but(STOPPING, refused={})) == 7.0
    clocks.pass_by(TIMEOUT - 1.0)
    assert hindered(but(STOPPING, refused={})) is None
    assert hindered(STOPPING) is None
    assert hindered(STOPPING) == 6.0 + TIMEOUT, "a pause in which no drain ends is none"
    assert hindered(but(STOPPING, refused={})) == 6.0 + TIMEOUT
    clocks.pass_by(TIMEOUT)
    assert hindered(but(STOPPING, refused={})) is None
    assert hindered(STOPPING) is None
    clocks.pass_by(5.0)
    assert hindered(STOPPING) == 5.0
    assert hindered(but(STOPPING, suspended_by=None)) == 5.0
    assert hindered(STOPPING) is None
    clocks.times.forget(JobKey("default", "j"))
    clocks.pass_by(5.0)
    assert hindered(STOPPING) is None


def test_who_looks_without_noting_it_changes_nothing() -> None:
    clocks = Clocks()
    assert clocks.times.watch(derive(STOPPING, now=clocks.wall))
    assert not clocks.times.watch(derive(STOPPING, now=clocks.wall)), "it is known by now"
    clocks.pass_by(9.0)
    for _ in range(2):
        assert clocks.times.timed(STOPPING).hindered_for == 9.0

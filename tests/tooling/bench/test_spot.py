"""Spot economics: whatever a control plane does to a job, the model's books balance."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.spot import trace
from bench.spot.tally import Costs, Tally
from bench.spot.training import Training
from bench.spot.world import World
from mpijob_elastic import names

SIZE = 3
COSTS = Costs(step=0.5, commit=4, checkpoint=30, elastic_timeout=20)
WORKERS = [names.worker("train", index) for index in range(SIZE)]
TICK = 0.25

# For each worker whether its name is listed, whether its pod runs, and in which incarnation; and
# for how many ticks.
MOMENTS = st.tuples(
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)), min_size=SIZE, max_size=SIZE
    ),
    st.booleans(),
    st.integers(1, 60),
)


def a_world(workers: list[tuple[bool, bool, int]], *, touch: str) -> World:
    listed = [
        names.host(pod, number)
        for pod, (is_listed, _, number) in zip(WORKERS, workers, strict=True)
        if is_listed
    ]
    running: Mapping[str, str] = {
        pod: f"uid {number}"
        for pod, (_, runs, number) in zip(WORKERS, workers, strict=True)
        if runs
    }
    return World(
        running=running,
        script=names.discover_hosts(listed, slots=1),
        hostfile=tuple(WORKERS),
        launcher="uid",
        started=True,
        touch=touch,
    )


# The driver's patience ends between two of its polls.
@example(moments=[([(False, False, 0)] * SIZE, False, 60)] * 3, elastic=True)
@given(moments=st.lists(MOMENTS, max_size=12), elastic=st.booleans())
def test_steps_are_counted_once(
    *, moments: list[tuple[list[tuple[bool, bool, int]], bool, int]], elastic: bool
) -> None:
    """Done steps are kept or lost and never both; nobody trains who does not run; no step comes from nowhere."""
    training = Training(costs=COSTS, size=SIZE, elastic=elastic)
    now, changes = 0.0, 0
    for workers, touched, ticks in moments:
        changes += touched
        world = a_world(workers, touch=str(changes))
        for _ in range(ticks):
            lost_before, useful_before = training.tally.lost, training.tally.useful(now)
            training.tick(now, world)
            if training.failed:
                training.again()
            if training.tally.gpu_seconds(now + 1) > training.tally.gpu_seconds(now):
                assert {names.pod_of(host) for host in training.ring} <= world.running.keys()
            assert training.tally.lost >= lost_before
            assert training.tally.useful(now) <= useful_before + TICK / COSTS.step
            now += TICK
    done = training.tally.gpu_seconds(now) / SIZE / COSTS.step
    assert training.tally.useful(now) + training.tally.lost == pytest.approx(done, abs=1e-6)
    assert 0 <= training.tally.useful(now) <= now / COSTS.step


def test_what_counts_after_a_pause_a_broken_ring_and_the_end_of_a_job() -> None:
    """A step counts by the share of GPUs that train; a ring goes back to its last commit, a job to its checkpoint."""
    paused, broken, ended = (
        Tally(costs=Costs(step=0.5, commit=10, checkpoint=100), size=4) for _ in range(3)
    )
    paused.begin(5, 4)
    paused.pause(15)
    paused.begin(15, 1)
    assert (paused.useful(25), paused.gpu_seconds(25), paused.lost) == (25, 50, 0)
    broken.begin(3, 4)
    broken.cut(27)
    assert broken.useful(30) == 40
    assert broken.lost == pytest.approx(8)
    ended.begin(90, 4)
    ended.pause(130)
    ended.begin(131, 2)
    ended.fail(161)
    assert (ended.useful(161), ended.lost) == (20, 90)


def test_the_oldest_machine_goes_first_two_minutes_after_its_notice() -> None:
    text = b'{"metadata": {"gap_seconds": 600}, "data": [2, 3, 1]}'
    found = trace.read(text, name="t", size=3, longest=1500)
    assert [(move.at, move.kind.value, move.name) for move in found.moves] == [
        (0, "up", "0"),
        (0, "up", "1"),
        (600, "up", "2"),
        (1080, "notice", "0"),
        (1080, "notice", "1"),
        (1200, "gone", "0"),
        (1200, "gone", "1"),
    ]
    assert (found.machine_seconds, found.interruptions) == (2 * 1200 + 900, 2)

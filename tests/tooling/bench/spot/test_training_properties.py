"""Whatever a control plane does to a job, the model's books balance."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.spot import economics, synthetic_trace
from bench.spot.costs import Costs
from bench.spot.economics import Prices
from bench.spot.synthetic_trace import Rules
from bench.spot.training import Training
from bench.spot.world import World
from mpijob_elastic import names

SIZE = 3
COSTS = Costs(step=0.5, commit=4, checkpoint=30, elastic_timeout=20)
WORKERS = [names.worker("train", index) for index in range(SIZE)]
TICK = 0.25

# For each worker whether its name is listed, whether its pod runs, and in which incarnation; and for how many ticks.
MOMENTS = st.tuples(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)), min_size=SIZE, max_size=SIZE),
    st.booleans(),
    st.integers(1, 60),
)


def a_world(workers: list[tuple[bool, bool, int]], *, touch: str) -> World:
    listed = [
        names.host(pod, number) for pod, (is_listed, _, number) in zip(WORKERS, workers, strict=True) if is_listed
    ]
    running: Mapping[str, str] = {
        pod: f"uid {number}" for pod, (_, runs, number) in zip(WORKERS, workers, strict=True) if runs
    }
    return World(
        running=running,
        script=names.discover_hosts(listed, slots=1),
        hostfile=tuple(WORKERS),
        launcher="uid",
        started=True,
        touch=touch,
    )


NOTHING = [(False, False, 0)] * SIZE


# The driver's patience ends between two of its polls.
@example(moments=[(NOTHING, False, 60)] * 3, elastic=True, seed=0)
@given(moments=st.lists(MOMENTS, max_size=12), elastic=st.booleans(), seed=st.integers(0, 9))
def test_steps_are_counted_once(
    *, moments: list[tuple[list[tuple[bool, bool, int]], bool, int]], elastic: bool, seed: int
) -> None:
    """Done steps are kept or lost and never both; nobody trains who does not run; no step comes from nowhere."""
    training = Training(costs=COSTS, size=SIZE, elastic=elastic, chance=Random(seed))
    now, changes = 0.0, 0
    for workers, touched, ticks in moments:
        changes += touched
        world = a_world(workers, touch=str(changes))
        for _ in range(ticks):
            lost_before, useful_before = training.tally.lost, training.tally.useful(now)
            training.tick(now, world)
            if training.failed:
                training.again()
            if training.points[-1].world:
                assert {names.pod_of(host) for host in training.ring} <= world.running.keys()
            assert training.tally.lost >= lost_before
            assert training.tally.useful(now) <= useful_before + TICK / COSTS.step
            assert training.next_change(now, world) >= now - TICK
            now += TICK
    done = training.tally.gpu_seconds(now) / SIZE / COSTS.step
    assert training.tally.useful(now) + training.tally.lost == pytest.approx(done, abs=1e-6)
    assert 0 <= training.tally.useful(now) <= now / COSTS.step


@given(workers=st.lists(st.tuples(st.booleans(), st.just(value=True), st.just(0)), min_size=SIZE, max_size=SIZE))
def test_skipping_to_what_comes_next_is_the_same_as_waiting_for_it(workers: list[tuple[bool, bool, int]]) -> None:
    """The replay's one liberty: at rest, time may jump to the model's next change."""
    before = a_world([(True, True, 0)] * SIZE, touch="0")
    after = a_world(workers, touch="1")
    waited, skipped = (Training(costs=COSTS, size=SIZE, elastic=True, chance=Random(1)) for _ in range(2))
    end = 400.0
    ticks = [number * TICK for number in range(int(end / TICK) + 1)]
    for now in ticks:
        waited.tick(now, before if now < 50 else after)
    now = 0.0
    while now <= end:
        world = before if now < 50 else after
        skipped.tick(now, world)
        coming = min(skipped.next_change(now, world), 50.0 if now < 50 else end)
        now = max(coming, now + TICK)
    assert list(waited.ring) == list(skipped.ring)
    assert waited.failures == skipped.failures
    assert waited.tally.useful(end) == pytest.approx(skipped.tally.useful(end), abs=SIZE * COSTS.commit / COSTS.step)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12), hours=st.floats(0.5, 72), mean=st.floats(0.2, 24))
def test_every_synthetic_trace_is_one(seed: int, size: int, hours: float, mean: float) -> None:
    """Its own checks hold, it begins with all machines, and money follows machines."""
    rules = Rules(mean_life=mean * synthetic_trace.HOUR, shortage_share=0.5)
    trace = synthetic_trace.generate(seed, size=size, horizon=hours * synthetic_trace.HOUR, rules=rules)
    assert trace.counts()[0] == (0.0, size)
    assert 0 < trace.machine_seconds <= size * trace.horizon + 1e-6
    bill = economics.spot(trace, useful=economics.best(trace, costs=COSTS), prices=Prices(), costs=COSTS)
    assert bill.survives == pytest.approx(1)

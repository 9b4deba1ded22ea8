"""Slow workers: which are named, and when, over time."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities.stragglers import Stragglers, slow
from mpijob_elastic.decide import derive
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, job
from tests.product.capabilities.stragglers.trainings import (
    Own,
    Training,
    named,
    noise,
    times,
    usual,
)

HOUR = 3600.0


def stopped(rank: int, at: float, seconds: float) -> Own:
    """A rank is stopped within a step, which takes it so much longer; all others wait."""
    once = iter((1000 * seconds,))
    return lambda one, now: usual(one, now) + (next(once, 0.0) if one == rank and now >= at else 0)


QUIET: tuple[tuple[str, Callable[[], Training]], ...] = (
    ("an evaluation of 20 minutes", lambda: Training(usual, pauses=[(600, 1800)])),
    ("a checkpoint of a minute by one rank", lambda: Training(stopped(0, 600, 60))),
    ("a rank that is stopped", lambda: Training(stopped(2, 600, 900))),
    ("all equally slow", lambda: Training(times(3.0, 0, 1, 2, 3, since=600))),
    ("two of four: nobody knows which is usual", lambda: Training(times(1.4, 0, 1, since=600))),
    ("three workers only", lambda: Training(times(3.0, 1), size=3)),
    ("noise", lambda: Training(noise(0.3, 1), size=8)),
    ("slow first steps of a ring", lambda: Training(first_steps, changes=[600, 900, 1300])),
    ("no own times", lambda: Training(lambda rank, _at: 0.0, size=4)),
    (
        "slow for a minute",
        lambda: Training(lambda r, at: times(2, 1)(r, at if 600 < at < 660 else -1)),
    ),
)


def first_steps(rank: int, at: float) -> float:
    """The first 100 seconds of each ring are slow for one rank, whose caches are cold."""
    is_cold = any(0 <= at - begin < 100 for begin in (600, 900, 1300))
    return usual(rank, at) * (4.0 if is_cold and rank == 3 else 1.0)


@pytest.mark.parametrize(("_case", "training"), QUIET, ids=[case for case, _ in QUIET])
def test_never_named(_case: str, training: Callable[[], Training]) -> None:
    one = training()
    assert named(one, HOUR) == {}
    assert one.writes == 0


@pytest.mark.parametrize(
    ("size", "rank", "factor"), [(4, 1, 2.0), (5, 0, 1.6), (8, 3, 2.1), (300, 299, 2.0)]
)
def test_named_within_three_minutes(size: int, rank: int, factor: float) -> None:
    training = Training(times(factor, rank, since=600), size=size)
    [(line, at)] = named(training, 1200 if size > 100 else HOUR).items()
    assert line == (
        f"SlowWorker: j-worker-{rank} on node-{rank}: {factor} times the median of {size} "
        f"workers; to go on without it: `mpijob-elastic scalein j --pod j-worker-{rank} -n default`"
    )
    assert 600 < at <= 600 + 180
    assert training.writes == 1


def test_it_stays_until_three_looks_find_it_quick() -> None:
    """1.4 times the median is no longer slow, and not quick either."""

    def own(rank: int, at: float) -> float:
        factor = 2.0 if 300 <= at < 900 else 1.4 if at < 1500 else 1.0
        return usual(rank, at) * (factor if rank == 2 and at >= 300 else 1.0)

    held = [at for at, told in Training(own).runs(2400) if told]
    assert held == [at for at in map(float, range(0, 2400, 30)) if held[0] <= at <= held[-1]]
    assert held[0] < 480
    assert 1500 + 60 <= held[-1] < 1500 + 180


def test_a_worker_that_wavers_costs_no_write() -> None:
    def own(rank: int, at: float) -> float:
        return usual(rank, at) * (1.4 + 0.3 * (at // 60 % 2) if rank == 2 and at >= 300 else 1)

    training = Training(own)
    named(training, HOUR)
    assert training.writes <= 1


def test_a_change_of_the_ring_starts_again() -> None:
    training = Training(times(2.0, 1), changes=[900])
    held = [at for at, told in training.runs(1800) if told]
    gone = [at for at in map(float, range(0, 1800, 30)) if at not in held]
    assert gone[-1] <= 900 + 120 + 120
    assert [at for at in gone if at > 300] == [at for at in held + gone if 900 < at <= gone[-1]]


def test_a_restart_of_the_controller_changes_nothing() -> None:
    training = Training(times(2.0, 1, since=600), restarts=[1800, 2700])
    assert len(named(training, HOUR)) == 1
    assert training.writes == 1


def test_after_a_restart_a_worker_that_has_become_quick_is_not_named() -> None:
    def own(rank: int, at: float) -> float:
        return usual(rank, at) * (2.0 if rank == 1 and at < 1790 else 1.0)

    training = Training(own, restarts=[1800])
    assert [told for at, told in training.runs(HOUR) if at > 1800 + 240 and told] == []


@given(data=st.data(), size=st.integers(4, 12))
def test_nobody_within_the_usual_is_named(data: st.DataObject, size: int) -> None:
    """Own times within 1.4 of one another, another one for each rank at each look."""
    drawn = st.lists(st.floats(1.0, 1.4), min_size=size, max_size=size)
    rows = [data.draw(drawn) for _ in range(6)]
    own = lambda rank, at: usual(rank, at) * rows[int(max(at, 0) // 30) % 6][rank]  # noqa: E731
    assert named(Training(own, size=size), 600) == {}


def told_of(view: JobView) -> list[str]:
    """What the room says of a job without a ledger, as a command sees it."""
    known = capabilities.told(view)
    room = known.of(Stragglers)
    return [one.line for one in room.notes(derive(known, now=NOW))] if room else []


SAID = (
    "SlowWorker: j-worker-1 on n: 2.1 times the median of 8 workers; to go on without it: "
    "`mpijob-elastic scalein j --pod j-worker-1 -n default`"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (SAID, [SAID]),
        (SAID.replace("worker-1 on n", "worker-1 on other"), []),
        (SAID.replace("j-worker-1", "j-worker-9"), []),
        (SAID.replace("2.1", "many"), []),
        ("SlowWorker: \x00", []),
        ("", []),
    ],
)
def test_a_command_says_what_the_controller_says(said: str, told: list[str]) -> None:
    view = job(3).pod(1, node="n").but(notices=said)
    assert told_of(view) == told


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        pytest.param({}, "mpijob-elastic scalein j --pod j-worker-1 -n default", id="as usual"),
        pytest.param(
            {"policy": Policy(min_replicas=3)},
            "kubectl cordon n && kubectl -n default delete pod j-worker-1",
            id="its least size",
        ),
    ],
)
def test_the_remedy_is_a_command_that_works(facts: dict[str, Any], step: str) -> None:
    view = job(3, **facts).pod(1, node="n").but(notices=SAID)
    known = capabilities.told(view)
    [note] = slow.notes(derive(known, now=NOW))
    assert note.next_step == step
    assert note.warning

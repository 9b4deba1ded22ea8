"""Steps that are kept or lost when a ring ends, and when a job does."""

import pytest

from bench.spot.costs import Costs
from bench.spot.tally import Tally

COSTS = Costs(step=0.5, commit=10, checkpoint=100)


@pytest.fixture
def tally() -> Tally:
    return Tally(costs=COSTS, size=4)


def test_a_step_counts_by_the_share_of_gpus_that_train(tally: Tally) -> None:
    tally.begin(5, 4)
    assert tally.useful(15) == 20
    tally.pause(15)
    tally.begin(15, 1)
    assert tally.useful(25) == 25
    assert tally.gpu_seconds(25) == 50


def test_nothing_counts_between_rings(tally: Tally) -> None:
    tally.begin(0, 4)
    tally.pause(10)
    assert tally.useful(50) == 20
    assert tally.gpu_seconds(50) == 40


def test_commits_are_counted_from_the_ring(tally: Tally) -> None:
    tally.begin(3, 4)
    assert tally.next_commit(3) == 3
    assert tally.next_commit(4) == 13
    assert tally.next_commit(13) == 13


def test_a_ring_that_breaks_goes_back_to_its_last_commit(tally: Tally) -> None:
    tally.begin(3, 4)
    tally.cut(27)
    assert tally.useful(30) == 40
    assert tally.lost == pytest.approx(8)


def test_a_job_that_ends_goes_back_to_its_last_checkpoint(tally: Tally) -> None:
    tally.begin(90, 4)
    tally.fail(195)
    assert tally.useful(200) == 20
    assert tally.lost == 190


def test_a_checkpoint_outlives_the_rings_after_it(tally: Tally) -> None:
    tally.begin(90, 4)
    tally.pause(130)
    tally.begin(131, 2)
    tally.cut(160)
    tally.fail(161)
    assert tally.useful(161) == 20


def test_a_checkpoint_is_written_by_a_ring_that_trains_alone(tally: Tally) -> None:
    tally.begin(10, 4)
    tally.pause(90)
    tally.begin(110, 4)
    tally.fail(150)
    assert tally.useful(150) == 0
    assert tally.lost == 240


def test_a_ring_that_does_not_train_has_nothing_to_lose(tally: Tally) -> None:
    tally.cut(10)
    tally.fail(20)
    assert (tally.useful(30), tally.lost) == (0, 0)

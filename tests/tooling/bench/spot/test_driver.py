"""Horovod's driver: what it does about each change of the list, and about each rank that dies."""

import math
from dataclasses import replace
from random import Random

import pytest

from bench.spot.costs import Costs
from bench.spot.driver import Driver
from bench.spot.tally import Tally

COSTS = Costs(step=1, commit=10, checkpoint=1000, poll=1, reset=2, start=3, elastic_timeout=60)
UIDS = {"a": "1", "b": "2", "c": "3"}


class Run:
    """A driver whose time goes by a tenth of a second."""

    def __init__(self, *, elastic: bool = True, costs: Costs = COSTS) -> None:
        self.tally = Tally(costs=costs, size=2)
        self.driver = Driver(now=0, costs=costs, tally=self.tally, elastic=elastic, chance=Random(1))
        self.now = 0.0

    def until(self, at: float, *listed: str, running: dict[str, str] | None = None) -> None:
        while self.now <= at:
            self.driver.tick(self.now, listed=listed, running=UIDS if running is None else running)
            self.now = round(self.now + 0.1, 6)

    def trains(self) -> tuple[set[str], int]:
        return set(self.driver.ring), self.driver.world


def test_a_ring_forms_and_trains() -> None:
    run = Run()
    run.until(4.9, "a", "b")
    assert run.trains() == ({"a", "b"}, 0)
    run.until(5, "a", "b")
    assert run.trains() == ({"a", "b"}, 2)
    assert run.tally.useful(15) == 10


def test_a_host_that_leaves_goes_at_the_next_commit_and_nothing_is_lost() -> None:
    run = Run()
    run.until(16, "a", "b")
    run.until(24.8, "a")
    assert run.trains() == ({"a", "b"}, 2)
    run.until(25.2, "a")
    assert run.trains() == ({"a"}, 0)
    run.until(27.2, "a")
    assert run.trains() == ({"a"}, 1)
    assert (run.tally.lost, run.driver.killed) == (0, 0)
    assert run.tally.useful(37) == 20 + 5


def test_a_host_that_joins_costs_its_start() -> None:
    run = Run()
    run.until(16, "a")
    run.until(25.2, "a", "b")
    run.until(29.8, "a", "b")
    assert run.trains() == ({"a", "b"}, 0)
    run.until(30.2, "a", "b")
    assert run.trains() == ({"a", "b"}, 2)


def test_a_host_that_comes_back_before_the_commit_changes_nothing() -> None:
    run = Run()
    run.until(16, "a", "b")
    run.until(19, "a")
    run.until(40, "a", "b")
    assert run.trains() == ({"a", "b"}, 2)
    assert run.tally.gpu_seconds(40) == 70


def test_a_change_after_one_that_was_taken_back_waits_for_its_own_commit() -> None:
    run = Run()
    run.until(16, "a", "b")
    run.until(19, "a")
    run.until(40, "a", "b")
    run.until(44.8, "a")
    assert run.trains() == ({"a", "b"}, 2)
    run.until(45.2, "a")
    assert run.trains() == ({"a"}, 0)


def test_a_rank_that_dies_breaks_the_ring_and_its_name_is_never_used_again() -> None:
    run = Run()
    run.until(19, "a", "b")
    run.until(40, "a", "b", running={"a": "1"})
    assert run.trains() == ({"a"}, 1)
    assert run.tally.lost == pytest.approx(4, abs=0.2)
    run.until(60, "a", "b", running={"a": "1", "b": "another"})
    assert run.trains() == ({"a"}, 1)
    assert run.driver.killed == 1


def test_it_comes_back_under_another_name() -> None:
    run = Run()
    job = {"j-worker-0": "1", "j-worker-1": "2"}
    run.until(19, *job, running=job)
    run.until(40, *job, running={"j-worker-0": "1"})
    run.until(70, "j-worker-0", "j-worker-1.r1", running={**job, "j-worker-1": "3"})
    assert run.trains() == ({"j-worker-0", "j-worker-1.r1"}, 2)


def test_or_once_its_name_has_cooled_down() -> None:
    run = Run(costs=replace(COSTS, cooldown=(10, 100)))
    run.until(19, "a", "b")
    run.until(20, "a", "b", running={"a": "1"})
    run.until(35, "a", "b")
    assert run.trains() == ({"a"}, 1)
    assert 39 < run.driver.next_change(run.now, listed=("a", "b")) < 50
    run.until(70, "a", "b")
    assert run.trains() == ({"a", "b"}, 2)
    assert run.driver.killed == 1


def test_a_pod_made_anew_under_its_name_is_a_loss_too() -> None:
    run = Run()
    run.until(19, "a", "b")
    run.until(30, "a", "b", running={"a": "1", "b": "another"})
    assert run.driver.killed == 1


def test_a_host_that_is_listed_too_early_is_lost() -> None:
    run = Run()
    run.until(16, "a")
    run.until(40, "a", "b", running={"a": "1"})
    assert run.trains() == ({"a"}, 1)
    assert run.driver.killed == 1


@pytest.mark.parametrize("listed", [("a", "b"), ("a", "b", "c")])
def test_a_ring_without_survivors_ends_the_job(listed: tuple[str, ...]) -> None:
    run = Run()
    run.until(19, "a", "b")
    run.until(25, *listed, running={"c": "3"})
    assert run.driver.failed == "no host of the last ring is left"
    assert run.trains() == (set(), 0)
    assert run.tally.useful(25) == 0


def test_a_list_without_anybody_of_the_ring_ends_the_job() -> None:
    run = Run()
    run.until(19, "a", "b")
    run.until(26, "c")
    assert run.driver.failed == "no host of the last ring is left"


def test_a_list_that_stays_empty_ends_the_job() -> None:
    run = Run()
    run.until(59)
    assert run.driver.failed == ""
    assert run.driver.next_change(run.now, listed=()) == 60
    run.until(61)
    assert run.driver.failed == "no host was listed in time"
    assert run.driver.next_change(run.now, listed=("a",)) == math.inf


def test_a_job_that_is_not_elastic_ends_with_its_first_rank() -> None:
    run = Run(elastic=False)
    run.until(19, "a", "b")
    run.until(22, "a", "b", "c")
    assert run.trains() == ({"a", "b"}, 2)
    run.until(23, "a", "b", running={"a": "1"})
    assert run.driver.failed == "b was lost"


def test_the_next_change_is_what_happens_next() -> None:
    run = Run()
    run.until(0, "a", "b")
    assert run.driver.next_change(run.now, listed=("a", "b")) == 5
    run.until(6, "a", "b")
    assert run.driver.next_change(run.now, listed=("a", "b")) == math.inf
    assert run.driver.next_change(run.now, listed=("a",)) == 7
    run.until(7.2, "a")
    assert run.driver.next_change(run.now, listed=("a",)) == 15

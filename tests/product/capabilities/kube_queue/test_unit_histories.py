"""Jobs in a queue of KubeQueue get their quota, keep to it and give it back, whatever happens meanwhile."""

import logging

import pytest

from tests.product.capabilities.kube_queue.unit_histories import UnitHistory
from tests.queued_histories import Step, play, search


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Doubles are looked at in a hurry, so a job is often not done: that is no news."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in (20, 40))]
)
async def test_histories(first: int) -> None:
    assert await search(range(first, first + 20), kind=UnitHistory) == []


async def test_a_new_leader_whose_watch_is_late_starts_no_job_that_is_held() -> None:
    steps = [("least", 2, 734), ("preempt", 1, 957), ("lag", 2, 78), ("crash", 0, 506)]
    assert await play(3, 7, steps, kind=UnitHistory) == []


@pytest.mark.parametrize(
    "steps",
    [
        [("forge", 0, 756), ("park", 0, 271)],
        [("forge", 0, 690), ("size", 0, 652), ("park", 0, 513)],
    ],
    ids=["park", "size and park"],
)
async def test_who_writes_that_a_job_has_ended_goes_round_no_rule(steps: list[Step]) -> None:
    """A QueueUnit came and went for ever."""
    assert await play(1, 2, steps, kind=UnitHistory) == []

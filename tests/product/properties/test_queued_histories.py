"""Jobs in a queue of Kueue get their quota, keep to it and give it back, whatever happens meanwhile."""

import logging

import pytest

from tests import queued_histories


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Doubles are looked at in a hurry, so a job is often not done: that is no news."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("first", range(0, 60, 20))
async def test_histories_of_one_and_of_three_jobs(first: int) -> None:
    assert await queued_histories.search(range(first, first + 20)) == []


async def test_pods_that_wait_start_once_their_job_has_left_its_queue() -> None:
    """Without a Workload it counted as unknown, for ever, whether there is a Kueue."""
    steps = [("lag", 0, 0), ("delete", 0, 253), ("size", 0, 910), ("queue", 0, 171)]
    assert await queued_histories.play(1, 2, steps) == []

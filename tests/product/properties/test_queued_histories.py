"""Jobs in a queue of Kueue get their quota, keep to it and give it back, whatever happens meanwhile.

And jobs without one have the workers that they ask for, and placeholders for those that are parked.
"""

import logging

import pytest

from tests import queued_histories
from tests.free_histories import FreeHistory
from tests.hindered_histories import HinderedHistory
from tests.requested_histories import RequestHistory


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Doubles are looked at in a hurry, so a job is often not done: that is no news."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)


SEEDS = pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in (20, 40))]
)


@SEEDS
async def test_histories_of_one_and_of_three_jobs(first: int) -> None:
    assert await queued_histories.search(range(first, first + 20)) == []


@SEEDS
async def test_histories_of_jobs_with_parked_workers(first: int) -> None:
    assert await queued_histories.search(range(first, first + 20), kind=FreeHistory) == []


async def test_histories_with_requests_of_et_operator() -> None:
    assert await queued_histories.search(range(4), kind=RequestHistory) == []


@pytest.mark.thorough
async def test_histories_of_tenants_that_hinder_the_controller() -> None:
    assert await queued_histories.search(range(6), kind=HinderedHistory) == []


async def test_pods_that_wait_start_once_their_job_has_left_its_queue() -> None:
    """Without a Workload it counted as unknown, for ever, whether there is a Kueue."""
    steps = [("lag", 0, 0), ("delete", 0, 253), ("size", 0, 910), ("queue", 0, 171)]
    assert await queued_histories.play(1, 2, steps) == []


@pytest.mark.parametrize(
    ("quota", "steps"),
    [
        (5, [("size", 0, 542), ("finish", 0, 0), ("relaunch", 0, 545), ("forge", 0, 474)]),
        (6, [("forge", 0, 177), ("template", 0, 445), ("relaunch", 0, 368), ("forge", 0, 897)]),
    ],
    ids=[
        "it waited for ever for a Workload that had finished",
        "with a nodeName its pods started past the queue",
    ],
)
async def test_a_job_whose_end_is_taken_back_queues_again(
    quota: int, steps: list[queued_histories.Step]
) -> None:
    assert await queued_histories.play(1, quota, steps) == []


@pytest.mark.parametrize(
    ("kind", "quota", "steps"),
    [
        (FreeHistory, 3, [("forge", 0, 814), ("size", 0, 620), ("forge", 0, 548)]),
        (queued_histories.History, 10, [("forge", 0, 606), ("park", 0, 699), ("forge", 0, 649)]),
        (
            FreeHistory,
            3,
            [("finish", 0, 185), ("queue", 0, 305), ("relaunch", 0, 598), ("forge", 0, 857)],
        ),
        (
            FreeHistory,
            3,
            [
                ("finish", 0, 967),
                ("park", 0, 242),
                ("queue", 0, 964),
                ("relaunch", 0, 968),
                ("forge", 0, 5),
            ],
        ),
    ],
    ids=["size", "park in a queue", "join a queue", "park and join a queue"],
)
async def test_who_writes_that_a_job_has_ended_goes_round_no_rule(
    kind: type[queued_histories.History], quota: int, steps: list[queued_histories.Step]
) -> None:
    """A worker waited for ever, or stayed in the list."""
    assert await queued_histories.play(1, quota, steps, kind=kind) == []


async def test_a_job_that_joins_a_queue_has_no_pod_started_by_who_has_not_seen_it() -> None:
    """A controller whose MPIJobs were old took the gate off the next launcher."""
    steps = [("queue", 0, 330), ("lag", 0, 18), ("relaunch", 0, 237), ("queue", 0, 631)]
    assert await queued_histories.play(1, 5, steps) == []


async def test_one_who_waits_for_more_quota_than_there_is_keeps_its_last_host() -> None:
    steps = [("queue", 1, 667), ("lose", 1, 50), ("fail", 1, 51)]
    assert await queued_histories.play(3, 2, steps, kind=FreeHistory) == []


@pytest.mark.parametrize(
    ("quota", "steps"),
    [
        (4, [("lag", 0, 636), ("size", 0, 655), ("park", 0, 986), ("sizes", 0, 646)]),
        (
            3,
            [
                ("size", 0, 727),
                ("sizes", 0, 2),
                ("slow", 0, 654),
                ("park", 0, 812),
                ("slow", 0, 166),
                ("park", 0, 819),
            ],
        ),
    ],
    ids=["of two or four", "of one, two or four"],
)
async def test_a_list_whose_hosts_all_leave_never_grows_to_a_size_that_is_not_allowed(
    quota: int, steps: list[queued_histories.Step]
) -> None:
    """All newcomers joined at once, beside the hosts that stayed until then."""
    assert await queued_histories.play(1, quota, steps, kind=FreeHistory) == []


async def test_a_worker_that_fails_before_any_is_ready_is_replaced() -> None:
    """Its failure was not counted before the first list, which was to name it."""
    assert await queued_histories.play(3, 4, [("crash", 1, 939), ("fail", 0, 824)]) == []


async def test_the_last_host_comes_back_under_another_name_where_its_job_has_certain_sizes() -> (
    None
):
    """Each waited for the other: the name to leave until another was listed, the other until the size was complete."""
    steps = [
        ("delete", 0, 492),
        ("finish", 0, 649),
        ("sizes", 0, 590),
        ("fail", 0, 271),
        ("lose", 0, 378),
    ]
    assert await queued_histories.play(1, 5, steps, kind=FreeHistory) == []

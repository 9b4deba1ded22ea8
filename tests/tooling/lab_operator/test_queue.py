import asyncio

import pytest

from lab.operator.limits import TokenBucket
from lab.operator.queue import Queue

A = "ns", "a"
B = "ns", "b"
PATIENCE = 5.0  # seconds; what is awaited comes after 5 ms


@pytest.fixture
async def queue() -> Queue:
    return Queue(overall=TokenBucket(rate=0, burst=1))


async def _get(queue: Queue) -> tuple[str, str]:
    async with asyncio.timeout(PATIENCE):
        return await queue.get()


async def _is_empty(queue: Queue) -> bool:
    try:
        async with asyncio.timeout(0.05):
            await queue.get()
    except TimeoutError:
        return True
    return False


async def test_a_key_added_often_comes_once_and_at_its_earliest_time(queue: Queue) -> None:
    for _ in range(12):  # the last of them alone would wait for ten seconds
        queue.add_rate_limited(A)
    assert await _get(queue) == A
    queue.done(A)
    assert await _is_empty(queue)


async def test_a_key_at_work_comes_again_only_when_that_is_done(queue: Queue) -> None:
    queue.add_rate_limited(A)
    assert await _get(queue) == A
    queue.forget(A)
    queue.add_rate_limited(A)
    assert await _is_empty(queue)
    queue.done(A)
    assert await _get(queue) == A


async def test_other_keys_do_not_wait_for_it(queue: Queue) -> None:
    queue.add_rate_limited(A)
    assert await _get(queue) == A
    queue.add_rate_limited(B)
    assert await _get(queue) == B


async def test_all_keys_share_the_overall_limit() -> None:
    queue = Queue(overall=TokenBucket(rate=0.001, burst=1))
    queue.add_rate_limited(A)
    queue.add_rate_limited(B)
    assert await _get(queue) == A
    assert await _is_empty(queue)

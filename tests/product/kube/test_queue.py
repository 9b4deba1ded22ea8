"""Each guarantee of the work queue, in its own words."""

import asyncio
from random import Random

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.backoff import Backoff
from mpijob_elastic.kube.queue import WorkQueue, work

NO_WAIT = Backoff(first=0.001, longest=0.001)


def make(retry: Backoff = NO_WAIT) -> WorkQueue[str]:
    return WorkQueue(random=Random(1), retry=retry)


async def takes_nothing(queue: WorkQueue[str]) -> bool:
    try:
        async with asyncio.timeout(0.02):
            await queue.get()
    except TimeoutError:
        return True
    return False


async def test_a_key_put_several_times_before_it_is_taken_is_taken_once() -> None:
    queue = make()
    for _ in range(3):
        queue.put("a")
    assert queue.depth == 1
    queue.done(await queue.get())
    assert await takes_nothing(queue)


async def test_a_key_is_never_with_two_workers_and_news_brings_it_back_once() -> None:
    queue = make()
    queue.put("a")
    key = await queue.get()
    queue.put("a")
    queue.put("a")
    assert await takes_nothing(queue)
    queue.done(key)
    assert await queue.get() == "a"
    queue.done("a")
    assert await takes_nothing(queue)


async def test_news_from_before_its_worker_looked_again_brings_a_key_not_back() -> None:
    queue = make()
    queue.put("a")
    key = await queue.get()
    queue.put("a")
    queue.caught_up(key)
    queue.done(key)
    assert await takes_nothing(queue)
    queue.caught_up(key)  # nobody has it, so nothing is remembered of it
    queue.put("a")
    key = await queue.get()
    queue.caught_up(key)
    queue.put("a")
    queue.done(key)
    assert await queue.get() == "a"


async def test_of_several_delays_the_earliest_wins() -> None:
    queue = make()
    queue.put_after("a", 3600)
    queue.put_after("a", 0.001)
    queue.put_after("a", 3600)
    queue.done(await queue.get())
    assert await takes_nothing(queue)


async def test_a_delay_that_was_replaced_never_ends() -> None:
    queue = make()
    queue.put_after("a", 0.02)
    queue.put_after("a", 0.001)
    queue.done(await queue.get())
    await asyncio.sleep(0.04)
    assert queue.depth == 0


async def test_a_delay_that_ends_while_its_key_is_worked_on_is_news() -> None:
    queue = make()
    queue.put("a")
    key = await queue.get()
    queue.put_after("a", 0.001)
    await asyncio.sleep(0.02)
    assert queue.depth == 0
    queue.done(key)
    assert queue.depth == 1


async def test_a_delay_that_ended_before_its_worker_looked_again_holds_up_no_later_one() -> None:
    queue = make()
    queue.put("a")
    key = await queue.get()
    queue.put_after(key, 0)
    await asyncio.sleep(0.002)
    queue.caught_up(key)
    queue.put_after(key, 0.002)
    queue.done(key)
    assert await asyncio.wait_for(queue.get(), 1) == "a"


async def test_taking_a_key_clears_its_delay_but_not_one_asked_for_meanwhile() -> None:
    queue = make()
    queue.put_after("a", 0.01)
    queue.put("a")
    key = await queue.get()
    await asyncio.sleep(0.02)
    queue.done(key)
    assert await takes_nothing(queue)
    queue.put("a")
    key = await queue.get()
    queue.put_after("a", 0.001)
    queue.done(key)
    assert await queue.get() == "a"


async def test_a_failed_key_comes_back_later_each_time_until_it_succeeds() -> None:
    queue = make(Backoff(first=0.001, longest=3600))
    delays = []
    for _ in range(3):
        queue.put("a")
        delays.append(queue.retry(await queue.get()))
    assert [0.0005 * 2**n <= delay <= 0.001 * 2**n for n, delay in enumerate(delays)] == [True] * 3
    queue.done(await queue.get())
    queue.put("a")
    assert queue.retry(await queue.get()) <= 0.001


async def test_news_of_a_failed_key_does_not_wait() -> None:
    queue = make(Backoff(first=3600, longest=3600))
    queue.put("a")
    key = await queue.get()
    queue.put("a")
    queue.retry(key)
    assert await queue.get() == "a"
    queue.retry("a")
    queue.put("a")
    assert await queue.get() == "a"


async def test_keys_are_taken_in_the_order_in_which_they_became_ready() -> None:
    queue = make()
    for key in ["c", "a", "b", "a"]:
        queue.put(key)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_the_oldest_age_is_that_of_the_first_that_waits() -> None:
    queue = make()
    assert queue.oldest_age() == 0
    queue.put("a")
    await asyncio.sleep(0.01)
    assert queue.oldest_age() >= 0.01
    before = asyncio.get_running_loop().time()
    queue.put("b")
    queue.done(await queue.get())
    assert queue.depth == 1
    assert queue.oldest_age() <= asyncio.get_running_loop().time() - before


async def test_a_cancelled_wait_loses_no_key() -> None:
    queue = make()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put("a")
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await queue.get() == "a"


async def test_a_key_whose_work_is_cancelled_is_not_lost() -> None:
    queue = make()
    started = asyncio.Event()

    async def hang(_: str) -> None:
        started.set()
        await asyncio.Event().wait()

    worker = asyncio.create_task(work(queue, hang, on_failure=lambda *_: None))
    queue.put("a")
    await started.wait()
    worker.cancel()
    await asyncio.wait({worker})
    assert not queue._taken
    assert await queue.get() == "a"


async def test_a_worker_tells_of_a_failure_and_goes_on_until_it_is_cancelled() -> None:
    queue = make()
    seen: list[str] = []
    told: list[tuple[str, str]] = []
    finished = asyncio.Event()

    async def handle(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            raise RuntimeError("first")
        if len(seen) == 3:
            finished.set()

    queue.put("a")
    queue.put("b")
    worker = asyncio.create_task(work(queue, handle, on_failure=lambda key, error, _: told.append((key, str(error)))))
    await finished.wait()
    worker.cancel()
    await asyncio.wait({worker})
    assert sorted(seen) == ["a", "a", "b"]
    assert told == [("a", "first")]


async def test_a_failed_key_waits_as_long_as_the_server_asked() -> None:
    queue = make()
    delays: list[float] = []
    failed = asyncio.Event()

    async def throttled(_: str) -> None:
        raise errors.Throttled(status=429, reason="", message="", retry_after=7)

    def told(_: str, __: Exception, delay: float) -> None:
        delays.append(delay)
        failed.set()

    queue.put("a")
    worker = asyncio.create_task(work(queue, throttled, on_failure=told))
    await failed.wait()
    worker.cancel()
    await asyncio.wait({worker})
    assert delays == [7]


async def test_however_many_keys_wait_everything_else_has_its_turn_between_two_of_them() -> None:
    """The Lease is renewed, and health is answered, while thousands of jobs that are at rest are looked at."""
    queue = make()
    handled: list[str] = []
    for number in range(1_000):
        queue.put(str(number))

    async def at_rest(key: str) -> None:
        handled.append(key)

    worker = asyncio.create_task(work(queue, at_rest, on_failure=lambda *_: None))
    for turn in range(10):
        await asyncio.sleep(0)
        assert len(handled) <= turn + 1
    assert handled
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)

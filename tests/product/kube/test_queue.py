"""Each guarantee of the work queue in its own words, in virtual time, and all at once under random news."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.queue import MOST_SLOW, SLOW_AFTER, Backoff, WorkQueue, work
from tests.examples import share
from tests.product.kube.virtual_time import in_no_time, run


def make(retry: Backoff) -> WorkQueue[str]:
    return WorkQueue(random=Random(1), retry=retry)


async def taken(queue: WorkQueue[str]) -> str:
    try:
        async with asyncio.timeout(10_000):
            return f"{await queue.get()}@{asyncio.get_running_loop().time():g}"
    except TimeoutError:
        return "nothing"


async def lived(story: str) -> str:
    """Do what the story says, and return what was taken (with the time), how much waits and since when."""
    queue, seen = make(Backoff(first=3600, longest=3600)), list[str]()
    does: dict[str, Callable[[str], object]] = {
        "put": queue.put,
        "done": queue.done,
        "failed": queue.retry,
        "caught": queue.caught_up,
    }
    for step in story.split(", "):
        match step.split():
            case ["put", key, "in", seconds]:
                queue.put_after(key, float(seconds))
            case [verb, *_, key] if verb in does:
                does[verb](key)
            case ["wait", seconds]:
                await asyncio.sleep(float(seconds))
            case ["take"]:
                seen.append(await taken(queue))
            case _:
                seen.append(f"{queue.depth} since {queue.oldest_age():g}")
    return " ".join(seen)


@pytest.mark.parametrize(
    ("story", "seen"),
    [
        pytest.param(
            "put a, put a, put a, waiting, take, done a, take",
            "1 since 0 a@0 nothing",
            id="put several times, taken once",
        ),
        pytest.param(
            "put a, take, put a, put a, take, done a, take, done a, take",
            "a@0 nothing a@10000 nothing",
            id="news brings a taken key back once, when it is done",
        ),
        pytest.param(
            "put a, take, put a, caught up a, done a, take",
            "a@0 nothing",
            id="news from before the worker looked again brings it not back",
        ),
        pytest.param(
            "caught up a, put a, take, caught up a, put a, done a, take",
            "a@0 a@0",
            id="news from after that does, and of a key that nobody has nothing is remembered",
        ),
        pytest.param(
            "put a in 3600, put a in 1, put a in 3600, take, done a, take",
            "a@1 nothing",
            id="the earliest of several delays wins, and one that was replaced never ends",
        ),
        pytest.param(
            "put a, take, put a in 1, wait 2, waiting, done a, waiting",
            "a@0 0 since 0 1 since 0",
            id="a delay that ends meanwhile is news",
        ),
        pytest.param(
            "put a, take, put a in 0, wait 2, caught up a, put a in 3, done a, take",
            "a@0 a@5",
            id="a delay that ended before the worker looked again holds up no later one",
        ),
        pytest.param(
            "put a in 10, put a, take, wait 20, done a, take",
            "a@0 nothing",
            id="taking clears a delay",
        ),
        pytest.param(
            "put a, take, put a in 1, done a, take", "a@0 a@1", id="but not one asked for meanwhile"
        ),
        pytest.param(
            "put a, take, put a, failed a, take, failed a, put a, take",
            "a@0 a@0 a@0",
            id="news of a failed key does not wait",
        ),
        pytest.param(
            "put c, put a, put b, put a, take, take, take",
            "c@0 a@0 b@0",
            id="in the order in which they became ready",
        ),
        pytest.param(
            "waiting, put a, wait 5, waiting, put b, take, done a, wait 1, waiting",
            "0 since 0 1 since 5 a@5 1 since 1",
            id="the oldest age is that of the first that waits",
        ),
    ],
)
def test_when_a_key_is_taken(story: str, seen: str) -> None:
    assert run(lived(story)) == seen


@in_no_time
async def test_a_failed_key_comes_back_later_each_time_until_it_succeeds() -> None:
    queue = make(Backoff(first=1, longest=3600))
    delays = []
    for _ in range(3):
        queue.put("a")
        delays.append(queue.retry(await queue.get()))
    assert [0.5 * 2**n <= delay <= 2**n for n, delay in enumerate(delays)] == [True] * 3
    queue.done(await queue.get())
    queue.put("a")
    assert queue.retry(await queue.get()) <= 1


@in_no_time
async def test_a_cancelled_wait_loses_no_key() -> None:
    queue = make(Backoff(first=1, longest=1))
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put("a")
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await queue.get() == "a"


@asynccontextmanager
async def worker(
    handle: Callable[[str], Awaitable[None]],
    told: list[tuple[str, str, float]],
    *keys: str,
    at_once: int = 1,
) -> AsyncIterator[WorkQueue[str]]:
    """Workers that go on until the context is left. told: takes the failures as key, error and delay."""
    queue = make(Backoff(first=1, longest=1))
    for key in keys:
        queue.put(key)
    task = asyncio.create_task(
        work(
            queue,
            handle,
            on_failure=lambda key, error, delay: told.append((key, str(error), delay)),
            at_once=at_once,
        )
    )
    yield queue
    task.cancel()
    await asyncio.wait({task})


@in_no_time
async def test_a_key_whose_work_is_cancelled_is_not_lost() -> None:
    async def hang(_: str) -> None:
        await asyncio.Event().wait()

    async with worker(hang, [], "a") as queue:
        await asyncio.sleep(1)
        assert queue.depth == 0
    assert not queue._taken
    assert await queue.get() == "a"


@in_no_time
async def test_a_cancellation_of_something_that_a_key_awaits_is_a_failure_of_that_key() -> None:
    """A worker that ended of it would be missed for ever, and a few such keys would end them all."""
    done, told = list[str](), list[tuple[str, str, float]]()
    cancelled = asyncio.get_running_loop().create_future()
    cancelled.cancel()

    async def handle(key: str) -> None:
        if key == "a":
            await cancelled
        done.append(key)

    async with worker(handle, told, "a", "b"):
        await asyncio.sleep(1)
    assert done == ["b"]
    assert {key for key, _, _ in told} == {"a"}


@in_no_time
async def test_a_worker_tells_of_a_failure_and_goes_on_after_as_long_as_the_server_asked() -> None:
    seen, told = list[str](), list[tuple[str, str, float]]()

    async def handle(key: str) -> None:
        seen.append(key)
        if seen == ["a"]:
            raise RuntimeError("first")
        if len(seen) == 2:
            raise errors.Throttled(status=429, reason="", message="", retry_after=7)

    async with worker(handle, told, "a", "b"):
        await asyncio.sleep(6.9)
        assert seen == ["a", "b", "a"]
        await asyncio.sleep(0.2)
    assert seen == ["a", "b", "a", "b"]
    assert [(key, delay if delay > 1 else error) for key, error, delay in told] == [
        ("a", "first"),
        ("b", 7),
    ]


@in_no_time
async def test_however_many_keys_wait_everything_else_has_its_turn_between_two_of_them() -> None:
    """The Lease is renewed, and health is answered, while thousands of jobs that are at rest are looked at."""
    handled: list[str] = []

    async def at_rest(key: str) -> None:
        handled.append(key)

    async with worker(at_rest, [], *map(str, range(1_000))):
        for turn in range(10):
            await asyncio.sleep(0)
            assert len(handled) <= turn + 1
        assert handled


@in_no_time
async def test_a_key_that_takes_long_gives_its_place_to_the_next() -> None:
    """An admission webhook that hangs makes each write of some jobs take 12 s; those of others go on."""
    done, loop = dict[str, float](), asyncio.get_running_loop()

    async def handle(key: str) -> None:
        await asyncio.sleep(12.0 if key.startswith("slow") else 0.01)
        done[key] = loop.time()

    slow = [f"slow-{number}" for number in range(40)]
    async with worker(handle, [], *slow, "quick", at_once=4) as queue:
        await asyncio.sleep(SLOW_AFTER * 10 + 0.1)
        assert list(done) == ["quick"]
        await asyncio.sleep(12.0)
        assert done.keys() == {*slow, "quick"}
        # Every worker that was slow is gone: no more keys than before are handled at once.
        for number in range(5):
            queue.put(f"after-{number}")
        await asyncio.sleep(0.015)
        assert len([key for key in done if key.startswith("after")]) == 4


@in_no_time
async def test_so_many_keys_at_most_give_their_place_away() -> None:
    """Each may have a connection."""
    busy, most = 0, 0

    async def handle(_: str) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(600.0)
        busy -= 1

    keys = [str(number) for number in range(MOST_SLOW * 2)]
    async with worker(handle, [], *keys, at_once=16) as queue:
        await asyncio.sleep(590.0)
        assert (most, queue.depth) == (MOST_SLOW + 16, MOST_SLOW - 16)
        await asyncio.sleep(1300.0)
        assert (busy, queue.depth) == (0, 0)


@in_no_time
async def test_a_slow_key_that_fails_or_is_cancelled_is_not_lost() -> None:
    told = list[tuple[str, str, float]]()

    async def handle(key: str) -> None:
        await asyncio.sleep(12.0 if key == "fails" else 600.0)
        raise RuntimeError("too slow")

    async with worker(handle, told, "fails", "hangs") as queue:
        await asyncio.sleep(12.2)
    assert [(key, error) for key, error, _ in told] == [("fails", "too slow")]
    assert not queue._taken
    assert {await queue.get(), await queue.get()} == {"fails", "hangs"}


@in_no_time
async def test_a_slow_key_that_takes_its_time_to_end_hires_nobody() -> None:
    """Its worker is cancelled, and its write still ends while the others have gone."""
    loop, failed, told = asyncio.get_running_loop(), list[object](), list[tuple[str, str, float]]()
    loop.set_exception_handler(lambda _, context: failed.append(context["message"]))

    async def handle(_: str) -> None:
        try:
            await asyncio.sleep(600.0)
        finally:
            await asyncio.sleep(SLOW_AFTER * 3)

    async with worker(handle, told, "ends") as queue:
        await asyncio.sleep(SLOW_AFTER / 2)
    assert failed == []
    assert await queue.get() == "ends"


steps = st.lists(
    st.tuples(st.sampled_from(["put", "after", "pause"]), st.sampled_from("abc")), max_size=40
)


@given(steps=steps, workers=st.integers(1, 3), seed=st.integers(0, 2**32))
@share(0.5)
def test_whatever_happens_the_last_news_of_every_key_is_worked_on_by_one_worker(
    steps: list[tuple[str, str]], workers: int, seed: int
) -> None:
    asyncio.run(scenario(steps, workers, Random(seed)))


async def scenario(steps: list[tuple[str, str]], workers: int, random: Random) -> None:
    """Every put makes a version; each key's last was seen in the end by a look that began after it."""
    queue: WorkQueue[str] = WorkQueue(random=random, retry=Backoff(first=0.001, longest=0.001))
    version: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    busy: set[str] = set()

    async def handle(key: str) -> None:
        assert key not in busy, "two workers at a time"
        busy.add(key)
        try:
            begun = version[key]
            for _ in range(random.randrange(3)):
                await asyncio.sleep(0)
                if random.random() < 0.5:
                    queue.caught_up(key)
                    begun = version[key]
            if random.random() < 0.3:
                raise RuntimeError("again")
            seen[key] = begun
        finally:
            busy.remove(key)

    def no_mistake(_: str, error: Exception, __: float) -> None:
        assert isinstance(error, RuntimeError), error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(queue, handle, on_failure=no_mistake, at_once=workers))]
        for verb, key in steps:
            if verb == "pause":
                await asyncio.sleep(0)
                continue
            version[key] += 1
            queue.put(key) if verb == "put" else queue.put_after(key, random.random() / 500)
        async with asyncio.timeout(30):
            while seen != version or left_behind(queue):
                await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()


def left_behind(queue: WorkQueue[str]) -> bool:
    """Tell whether a finished key left anything in the queue."""
    return any([queue._ready, queue._taken, queue._timers, queue._failures])

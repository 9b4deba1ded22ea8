"""The work queue under random news, delays and failures."""

import asyncio
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube.backoff import Backoff
from mpijob_elastic.kube.queue import WorkQueue, work
from tests.examples import share

steps = st.lists(st.tuples(st.sampled_from(["put", "after", "pause"]), st.sampled_from("abc")), max_size=40)


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
        tasks = [group.create_task(work(queue, handle, on_failure=no_mistake)) for _ in range(workers)]
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

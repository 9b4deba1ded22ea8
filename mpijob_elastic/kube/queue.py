"""The work queue between the watches and the workers: it holds keys, not events.

Guarantees (each has a test of the same words):
- a key put several times before it is taken is taken once;
- a key is never with two workers at a time;
- a key put while it is worked on is taken once more afterwards;
- but not if its worker has looked again by itself since, and said so by `caught_up`;
- of several delays asked for one key the earliest wins, and taking the key clears them: the worker
  that has the key knows best when to look again;
- a failed key comes back after a delay that doubles with each failure in a row, but news of the key
  does not wait for that delay;
- a key whose work is cancelled is not lost;
- a cancellation of something that a key awaits is a failure of that key;
- keys are taken in the order in which they became ready;
- however many keys wait, everything else has its turn between two of them;
- a key that takes long gives its place to the next key, so that no key waits for a slow answer to
  another key's request;
- a finished key leaves nothing behind.

Only for one event loop; nothing here may be called from another thread.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from mpijob_elastic.kube import errors

# Seconds after which a key that is worked on gives its place away. A healthy API server answers in
# milliseconds; an admission webhook that hangs makes each write of some jobs take 10 s or more.
SLOW_AFTER = 0.5
# Keys that may have given their place away at the same time: each may have a connection, with its
# buffers.
MOST_SLOW = 240

# Every sensible bound is reached below this exponent; far above it floats overflow.
_LARGEST_EXPONENT = 64


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Waits that double; half of each wait is random, so that clients do not retry together."""

    #: Seconds of the first wait.
    first: float
    #: Seconds of the longest wait.
    longest: float

    def delay(self, failures: int, random: Random) -> float:
        """Return the seconds to wait; `failures` counts from 1."""
        bound = min(self.longest, self.first * 2.0 ** min(failures - 1, _LARGEST_EXPONENT))
        return bound * (1 + random.random()) / 2


K = TypeVar("K", bound=Hashable)

# A conflict needs only a fresh look at once; a lasting failure is retried once a minute.
JOB_RETRY = Backoff(first=0.05, longest=60.0)


class Interrupted(Exception):
    """The work on a key awaited what somebody else cancelled; nobody has cancelled its worker."""


class WorkQueue(Generic[K]):
    """Keys to work on. Create it while the event loop runs."""

    def __init__(self, *, random: Random, retry: Backoff = JOB_RETRY) -> None:
        self._random = random
        self._retry = retry
        self._loop = asyncio.get_running_loop()
        # When each waiting key became ready. There are as many permits as waiting keys.
        self._ready: OrderedDict[K, float] = OrderedDict()
        self._permits = asyncio.Semaphore(0)
        # The keys that a worker has; true if news came meanwhile.
        self._taken: dict[K, bool] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    @property
    def depth(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._ready)

    def oldest_age(self) -> float:
        """Return the seconds that the first waiting key has waited; 0 if none waits."""
        return self._loop.time() - next(iter(self._ready.values())) if self._ready else 0.0

    def put(self, key: K) -> None:
        """Queue `key` for the next free worker."""
        if key in self._ready:
            return
        if key in self._taken:
            self._taken[key] = True
            return
        self._ready[key] = self._loop.time()
        self._permits.release()

    def put_after(self, key: K, delay: float) -> None:
        """Queue `key` in `delay` seconds at the latest."""
        due = self._loop.time() + delay
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= due:
            return
        self._drop_timer(key)
        self._timers[key] = self._loop.call_at(due, self._fire, key)

    async def get(self) -> K:
        """Return the next key, the caller's until `done` or `retry`."""
        await self._permits.acquire()
        key, _ = self._ready.popitem(last=False)
        self._taken[key] = False
        self._drop_timer(key)
        return key

    def caught_up(self, key: K) -> None:
        """Note that the worker with `key` now looks at the latest state.

        Earlier news needs no further look.
        """
        if key in self._taken:
            self._taken[key] = False

    def done(self, key: K) -> None:
        """Finish `key`: its work succeeded."""
        self._failures.pop(key, None)
        self._give_up(key)

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Queue `key` again after a failure, in `at_least` seconds or later; return the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._retry.delay(failures, self._random))
        self._give_up(key)
        self.put_after(key, delay)
        return delay

    def _give_up(self, key: K) -> None:
        if self._taken.pop(key):
            self.put(key)

    def _fire(self, key: K) -> None:
        # If `caught_up` takes the news back, a timer that stayed would be the earliest for ever.
        del self._timers[key]
        self.put(key)

    def _drop_timer(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()


async def work(
    queue: WorkQueue[K],
    handle: Callable[[K], Awaitable[None]],
    *,
    on_failure: Callable[[K, Exception, float], None],
    at_once: int = 1,
) -> None:
    """Handle key after key, `at_once` keys at a time and slow keys besides; cancel to stop.

    Any error that `handle` raises is passed to `on_failure` with the delay in seconds until the
    next try, and stops nothing. A Retry-After of the API server is obeyed.
    """
    async with asyncio.TaskGroup() as group:
        crew = _Crew(queue=queue, handle=handle, on_failure=on_failure, group=group)
        for _ in range(at_once):
            crew.hire()


@dataclass(eq=False, kw_only=True)
class _Crew(Generic[K]):
    """The workers of a queue: so many at each moment, besides those whose key is slow."""

    queue: WorkQueue[K]
    handle: Callable[[K], Awaitable[None]]
    on_failure: Callable[[K, Exception, float], None]
    group: asyncio.TaskGroup
    # The keys that have given their place away, and when the others do.
    _slow: set[K] = field(default_factory=set, init=False)
    _timers: dict[K, asyncio.TimerHandle] = field(default_factory=dict, init=False)

    def hire(self) -> None:
        """Add a worker."""
        self.group.create_task(self._work())

    async def _work(self) -> None:
        """Handle key after key, until a key was slow and another worker took the place."""
        is_in_place = True
        while is_in_place:
            # While keys wait and their jobs are at rest, nothing below lets go of the event loop.
            await asyncio.sleep(0)
            key = await self.queue.get()
            self._watch(key)
            try:
                await self._work_on(key)
            finally:
                self._timers.pop(key).cancel()
                is_in_place = key not in self._slow
                self._slow.discard(key)

    def _watch(self, key: K) -> None:
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(SLOW_AFTER, self._give_place_away, key)

    def _give_place_away(self, key: K) -> None:
        if len(self._slow) >= MOST_SLOW:
            return self._watch(key)
        hired = self._work()
        try:
            self.group.create_task(hired)
        except RuntimeError:
            # The crew is cancelled, and this key takes its time to end: nobody takes its place.
            hired.close()
        else:
            self._slow.add(key)
        return None

    async def _work_on(self, key: K) -> None:
        queue = self.queue
        try:
            await self.handle(key)
        except Exception as error:  # noqa: BLE001 - one key's failure, of any kind, must not stop the others
            self._failed(key, error)
        except asyncio.CancelledError as error:
            if not _is_cancelled():
                # A worker that ended of it would be missed for ever: a group does not tell of it.
                self._failed(key, Interrupted(f"what {key} waited for was cancelled: {error}"))
                return
            queue.put(key)
            queue.done(key)
            raise
        else:
            queue.done(key)

    def _failed(self, key: K, error: Exception) -> None:
        asked = error.retry_after if isinstance(error, errors.ApiError) else None
        self.on_failure(key, error, self.queue.retry(key, at_least=asked or 0.0))


def _is_cancelled() -> bool:
    """Tell whether somebody wants this task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

"""The operator's work queue: client-go 0.15's rate-limited, delaying queue of keys.

- A key is with one worker at a time; one that is added meanwhile comes again when the worker is done.
- A key that waits is waiting once, for the earliest of its times.
- Every addition is rate-limited, changes seen as much as failures: the operator asks for that, so a burst of changes
  may be noticed seconds late.
"""

import asyncio

from lab.operator.limits import Backoff, TokenBucket
from lab.operator.wire import Key


class Queue:
    """Keys to sync; `overall` limits additions of all keys together."""

    def __init__(self, *, overall: TokenBucket) -> None:
        self._loop = asyncio.get_running_loop()
        self._overall = overall
        self._backoff = Backoff()
        self._waiting: dict[Key, asyncio.TimerHandle] = {}
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()

    def add_rate_limited(self, key: Key) -> None:
        """Let the key come after the wait that is due."""
        now = self._loop.time()
        when = now + max(self._backoff.next(key), self._overall.reserve(now))
        waiting = self._waiting.get(key)
        if waiting is not None:
            if waiting.when() <= when:
                return
            waiting.cancel()
        self._waiting[key] = self._loop.call_at(when, self._add, key)

    async def get(self) -> Key:
        """Wait for a key; the caller must say `done` for it."""
        key = await self._ready.get()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: Key) -> None:
        """End the work on a key."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.put_nowait(key)

    def forget(self, key: Key) -> None:
        """Let the key wait shortly again next time."""
        self._backoff.forget(key)

    def _add(self, key: Key) -> None:
        self._waiting.pop(key, None)
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.put_nowait(key)

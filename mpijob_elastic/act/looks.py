"""Looks by exec: the shared part of probes of workers and looks into launchers.

A look runs beside the reconcile loop, because a shell may hang until its timeout, and one tenant
may have hundreds that do. Turns are bounded in number and rate, and shared fairly by namespaces and
by the jobs of each: a namespace holds no more places than it leaves free, and a job half of that,
so a newcomer finds a place, whatever the others hold. Turns go round: each waiting namespace gets
one turn, then each again; within a namespace, each job. Results are kept in memory alone.
"""

import asyncio
import logging
import math
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import LIMIT, ExecResult, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader

log = logging.getLogger(__name__)

# Namespace and name.
Job = tuple[str, str]
Kept = TypeVar("Kept")


class Places:
    """`size` places, of which a namespace may hold half and a job a third.

    Both may hold fewer while others hold some.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._held: Counter[tuple[str, ...]] = Counter()

    def free_for(self, namespace: str, job: str) -> bool:
        """Tell whether a job may take a place."""
        return self._held[namespace,] < self._free and 2 * self._held[namespace, job] < self._free

    def take(self, namespace: str, job: str, *, count: int = 1) -> None:
        """Take a place for a job; `count` -1 gives it back."""
        self._free -= count
        for key in ((namespace,), (namespace, job)):
            self._held[key] += count
            if not self._held[key]:
                del self._held[key]


class FairTurns:
    """Turns for looks, limited in rate and in number.

    a_second: turns in a second, evenly spaced, or in groups of `together` with longer pauses.
    at_once: turns held at the same time. asked: `most` places for callers that have a turn or wait
    for a turn; each caller takes and gives back its place.
    """

    def __init__(
        self, *, at_once: int, a_second: float, together: int = 1, most: int = sys.maxsize
    ) -> None:
        self.asked = Places(most)
        self._places = Places(at_once)
        self._together = together
        self._pause = together / a_second
        # When the last turns together began, and how many of them are left.
        self._at = -math.inf
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None
        # By namespace and job. After a turn, the namespace and the job go to the end of both.
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}

    @asynccontextmanager
    async def turn(self, namespace: str, job: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold a place during the block."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, {}).setdefault(job, deque()).append(turn)
        self._give()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._places.take(namespace, job, count=-1)
                self._give()

    def _give(self) -> None:
        """Give all turns that are due."""
        loop = asyncio.get_running_loop()
        while (chosen := self._next()) is not None:
            if loop.time() >= self._at + self._pause:
                self._begin_group(loop.time())
            if not self._left:
                at = self._at + self._pause
                self._timer = self._timer or loop.call_at(at, self._give_later, at)
                return
            turn = self._pop(*chosen)
            if not turn.cancelled():
                self._left -= 1
                self._places.take(*chosen)
                turn.set_result(None)

    def _begin_group(self, at: float) -> None:
        self._at, self._left = at, self._together

    def _give_later(self, at: float) -> None:
        self._timer = None
        if at > self._at:
            self._begin_group(at)  # without a look at the clock: a timer may fire a moment early
        self._give()

    def _next(self) -> tuple[str, str] | None:
        waiting = ((namespace, job) for namespace, jobs in self._waiting.items() for job in jobs)
        return next((found for found in waiting if self._places.free_for(*found)), None)

    def _pop(self, namespace: str, job: str) -> asyncio.Future[None]:
        jobs = self._waiting.pop(namespace)
        turns = jobs.pop(job)
        turn = turns.popleft()
        if turns:
            jobs[job] = turns
        if jobs:
            self._waiting[namespace] = jobs
        return turn


@dataclass(eq=False)
class Looks(Generic[Kept]):
    """Looks under way, at most a single look for each key, and their results."""

    client: ApiReader
    _: KW_ONLY
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    #: Called with the namespace and name of a job when a look into the job has news.
    wake: Callable[[str, str], None]
    #: Results by job. Answers that come after their job was dropped from here are dropped, too.
    jobs: dict[Job, Kept] = field(default_factory=dict, init=False)
    _asking: dict[str, asyncio.Task[bool]] = field(default_factory=dict, init=False)

    def forget(self, job: Job) -> None:
        """Forget a job that is gone."""
        self.jobs.pop(job, None)

    async def close(self) -> None:
        """Stop every look, and wait until all have ended."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _begin(
        self, key: str, job: Job, turns: FairTurns, look: Callable[[], Awaitable[bool]]
    ) -> None:
        """Look in a turn, unless the same look is under way or too many looks wait.

        look: returns True if it has news.
        """
        if key in self._asking or not turns.asked.free_for(*job):
            return

        async def look_in_turn() -> bool:
            async with turns.turn(*job):
                return await look()

        def end(task: asyncio.Task[bool]) -> None:
            turns.asked.take(*job, count=-1)
            del self._asking[key]
            # Wake the job only now: the next look may be due already, and would be dropped while
            # this look is under way.
            if not task.cancelled() and task.result():
                self.wake(*job)

        turns.asked.take(*job)
        self._asking[key] = asyncio.create_task(look_in_turn())
        self._asking[key].add_done_callback(end)


async def look_into(
    client: ApiReader,
    namespace: str,
    pod: str,
    *,
    container: str,
    command: list[str],
    timeout: float,  # noqa: ASYNC109 - of exec_in_pod
    limit: int = LIMIT,
) -> ExecResult | None:
    """Run a command that changes nothing; return None if the command could not be run."""
    try:
        return await exec_in_pod(
            client,
            namespace,
            pod,
            container=container,
            command=command,
            timeout=timeout,
            limit=limit,
        )
    except errors.KubeError as error:
        log.debug("no look into %s/%s: %s", namespace, pod, error)
        return None

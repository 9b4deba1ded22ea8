"""Looks by exec: what probes of workers and looks into launchers share.

A look runs beside the reconcile loop, in its turn (act/turns), because a shell may hang. Results are kept in memory
alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from mpijob_elastic.act.turns import FairTurns
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import LIMIT, ExecResult, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader

log = logging.getLogger(__name__)

# Namespace and name.
Job = tuple[str, str]
Kept = TypeVar("Kept")


class Looks(Generic[Kept]):
    """Looks under way, a single look for each key at most, and what is kept of them; `wake` is called at news."""

    def __init__(self, client: ApiReader, *, now: Callable[[], float], wake: Callable[[str, str], None]) -> None:
        self._client = client
        self._now = now
        self._wake = wake
        self._asking: dict[str, asyncio.Task[bool]] = {}
        # Whoever drops a job here has the answers dropped that are still to come.
        self.jobs: dict[Job, Kept] = {}

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self.jobs.pop((namespace, name), None)

    async def close(self) -> None:
        """Stop every look, and wait until all have ended."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _begin(self, key: str, job: Job, turns: FairTurns, look: Callable[[], Awaitable[bool]]) -> None:
        """Look in a turn, unless that is under way or too many wait; `look` tells whether it has news."""
        if key in self._asking or not turns.asked.free_for(*job):
            return

        async def look_in_turn() -> bool:
            async with turns.turn(*job):
                return await look()

        def end(task: asyncio.Task[bool]) -> None:
            turns.asked.take(*job, count=-1)
            del self._asking[key]
            # Not before: the next look may be due already, and would be dropped while this look is under way.
            if not task.cancelled() and task.result():
                self._wake(*job)

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
    """Run a command that changes nothing; return None if it could not be run."""
    try:
        return await exec_in_pod(
            client, namespace, pod, container=container, command=command, timeout=timeout, limit=limit
        )
    except errors.KubeError as error:
        log.debug("no look into %s/%s: %s", namespace, pod, error)
        return None

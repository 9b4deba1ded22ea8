"""Follow how far the jobs are whose pages are open, and where their GPU-seconds go.

A job has one turn of looks at a time, into a tenth of its workers, however many pages show it. The
seconds of a listed worker are counted to the last look into it, so each has one every half minute.
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mpijob_elastic.cli.jobs import progress_looks, progress_report
from mpijob_elastic.cli.jobs.live import Key
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.goodput import Ledger
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.progress import ProgressLine

log = logging.getLogger(__name__)

# Seconds between two turns of looks into a job, and between two after a refusal.
APART, REFUSED_APART = 3.0, 30.0
# Seconds between two turns while there are workers into which nobody has looked.
AT_FIRST = 0.2
# The turns in which all workers are looked into, and the most looks of a turn.
TURNS, MOST = 10, 32
NOTHING: Mapping[str, object] = {"progress": None, "goodput": None}


def of_turn(listed: int) -> int:
    """Return into how many of so many published workers a turn looks."""
    return min(math.ceil(listed / TURNS), MOST)


class Trainings:
    """The jobs whose pages are open."""

    def __init__(self) -> None:
        self._followed: dict[Key, FollowedTraining] = {}
        self._readers: dict[Key, int] = {}

    @contextmanager
    def shared(self, key: Key) -> "Iterator[FollowedTraining]":
        """Give what all pages of a job share, until the last of them is closed."""
        self._readers[key] = self._readers.get(key, 0) + 1
        try:
            yield self._followed.setdefault(key, FollowedTraining())
        finally:
            self._readers[key] -= 1
            if not self._readers[key]:
                del self._readers[key], self._followed[key]


class FollowedTraining:
    """A job that is followed while its page is open."""

    def __init__(self) -> None:
        #: The lines that looks have found, by the uid of the pod.
        self._lines: dict[str, ProgressLine] = {}
        #: When each worker was looked into last, by the uid of the pod; by a clock of this process.
        self._looked_at: dict[str, float] = {}
        self._ledger: Ledger | None = None
        self._one_at_a_time = asyncio.Lock()
        self._again_at = 0.0
        #: All published workers were looked into once.
        self._is_seen = False
        self._report: Mapping[str, object] = NOTHING

    async def look(self, client: ApiReader, view: JobView) -> Mapping[str, object]:
        """Look into some workers if a turn is due, and return what the page shows.

        `goodput` is None until the published workers were looked into.
        """
        async with self._one_at_a_time:
            if time.monotonic() >= self._again_at:
                await self._look(client, view)
            return self._report

    async def _look(self, client: ApiReader, view: JobView) -> None:
        due, pause = self._due(view), APART
        chosen = due[: of_turn(len(due))]
        if chosen:
            found = await progress_looks.look(client, chosen)
            self._lines |= found.lines
            self._note(chosen)
            if found.refused:  # for what the account may do, so a look into another is refused, too
                self._note(due)
                pause = REFUSED_APART
        self._is_seen = self._is_seen or all(one.ref.uid in self._looked_at for one in due)
        self._again_at = time.monotonic() + (pause if self._is_seen else AT_FIRST)
        try:
            self._report = self._reported(view)
        except Exception as error:  # the rest of the page does not depend on it
            log.warning("the training of %s cannot be shown", view.name, exc_info=error)
            self._report = NOTHING

    def _due(self, view: JobView) -> list[Worker]:
        """Return the workers to look into, the first due first; forget pods that are gone."""
        there = {worker.ref.uid for worker in view.workers}
        self._lines = {uid: line for uid, line in self._lines.items() if uid in there}
        self._looked_at = {uid: at for uid, at in self._looked_at.items() if uid in there}
        if not progress_looks.trains(view):
            return []
        listed = progress_looks.listed(view)
        return sorted(listed, key=lambda worker: self._looked_at.get(worker.ref.uid, 0.0))

    def _note(self, workers: list[Worker]) -> None:
        self._looked_at |= {worker.ref.uid: time.monotonic() for worker in workers}

    def _reported(self, view: JobView) -> Mapping[str, object]:
        if not progress_report.is_ours(view):
            return NOTHING
        now = time.time()
        ledger = progress_report.followed(self._ledger, view, self._lines, now=now)
        # Until all seconds are accounted for, each look begins anew.
        is_followed = self._ledger is not None and self._ledger.uid == ledger.uid
        is_counted = is_followed or progress_report.is_counted(view)
        self._ledger = ledger if is_counted else None
        shows = is_counted and self._is_seen
        goodput = progress_report.goodput(ledger, now=now) if shows else None
        return {"progress": progress_report.progress(ledger), "goodput": goodput}

"""`logs`: the launcher's log, in which the lines of all ranks are; also only those of one rank or worker."""

from __future__ import annotations

import time
from collections import deque
from contextlib import aclosing

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import launcher_pod, rank_looks
from mpijob_elastic.cli.jobs.launcher_log import LauncherLog, Wanted
from mpijob_elastic.cli.jobs.launcher_pod import NotStarted
from mpijob_elastic.cli.jobs.log_position import Line
from mpijob_elastic.cli.target import Where, reached
from mpijob_elastic.explain.spawned_ranks import Lives, printed_rank
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.telemetry import terminal
from mpijob_elastic.telemetry.terminal import say

# The most seconds that a look at the ranks is old when a line gets the name of its worker.
RANKS_EVERY = 5.0


async def logs(where: Where, *, job: str, wanted: Wanted) -> None:
    """Print the log. Raises `errors.KubeError`: NoSuchJob, NoSuchWorker, NotStarted and others."""
    async with reached(where) as (client, namespace):
        assert namespace is not None
        log = LauncherLog(client, await launcher_pod.find_job(client, namespace, job), wanted)
        naming = _Naming(client, log, wanted)
        past = deque[bytes](maxlen=wanted.tail)
        is_past = True
        async with aclosing(log.follow() if wanted.follow else log.once()) as lines:
            async for line in lines:
                text = await naming.named(line) if line else None
                if text is not None and is_past and wanted.tail is not None:
                    past.append(text)
                elif text is not None:
                    terminal.copy(text)
                elif line is None:
                    is_past = False
                    for text in past:
                        terminal.copy(text)


class _Naming:
    """Chooses lines of ranks, and names their workers."""

    def __init__(self, client: ApiReader, log: LauncherLog, wanted: Wanted) -> None:
        self._client = client
        self._log = log
        self._wanted = wanted
        self._worker = launcher_pod.worker_pod(log.job, wanted.worker) if wanted.worker is not None else ""
        self._lives: Lives | None = None
        self._looked_at: float | None = None

    async def named(self, line: Line) -> bytes | None:
        """Return a line as it is to be printed, None if it is not wanted. Raises as `rank_looks.look` for a worker."""
        if not self._wanted.some:
            return line.text
        await self._look()
        rank = printed_rank(line.text)
        if rank is None or self._wanted.rank not in (None, rank):
            return None
        if self._lives is None:
            return line.text
        pods = self._lives.pods(rank, at=line.at)
        if self._worker and self._worker not in pods:
            return None
        return f"{', '.join(pods) or 'ended'}: ".encode() + line.text

    async def _look(self) -> None:
        """Look at the ranks, unless that was a moment ago."""
        pod, is_first = self._log.pod, self._looked_at is None
        if pod is None or (self._looked_at is not None and time.monotonic() < self._looked_at + RANKS_EVERY):
            return
        self._looked_at = time.monotonic()
        try:
            if pod.ended:
                raise NotStarted(f"{pod.launcher.ref.name} has ended")
            look = await rank_looks.look(self._client, self._log.job.metadata.namespace, pod.launcher)
        except errors.KubeError as error:
            if is_first and self._worker:
                if isinstance(error, errors.Unreachable):
                    raise
                raise NotStarted(f"which lines are of {self._worker} is not known: {error}") from error
            if is_first:
                said = f"which worker prints [{self._wanted.rank}] is not known: {error}"
                say(f"{names.PROGRAM}: {said}; --rank means the number that Horovod prints", err=True)
            return
        self._lives = self._lives or Lives()
        self._lives.add(look)
        if is_first and self._worker and not self._lives.has(self._worker):
            said = f"no rank runs in {self._worker}, so none of the lines are known to be its own"
            if not self._wanted.follow:
                raise NotStarted(said)
            say(f"{names.PROGRAM}: {said} yet", err=True)

"""`logs`: print the launcher's log, which contains the lines of all ranks.

With --rank or --worker, only the lines of a rank or a worker are printed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from mpijob_elastic import names
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import exec_probes, pods
from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.pods import LauncherPod, NotStarted
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob, SeenJob
from mpijob_elastic.cli.target import Where
from mpijob_elastic.diagnosis.logged_ranks import Lives, printed_rank
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.model import phrases
from mpijob_elastic.model.json_parts import seconds, timestamp
from mpijob_elastic.telemetry import terminal
from mpijob_elastic.telemetry.terminal import say

# A line gets the name of its worker from a look at the ranks that is at most so many seconds old.
RANKS_EVERY = 5.0
# Seconds between two looks at a pod.
POLL = 1.0
# Seconds without a byte of the log, after which the pod is looked at again.
SILENCE = 60.0
# Seconds of the log that are read again, see Position.
OVERLAP = 1


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The part of a log that is wanted."""

    #: Wait for more lines until the job ends.
    follow: bool = False
    #: Only the lines of so many last seconds.
    since: float | None = None
    #: Only the lines since this moment, as RFC 3339; "" for all.
    since_time: str = ""
    #: Print the time of each line before it.
    timestamps: bool = False
    #: Only so many of the last lines.
    tail: int | None = None
    #: The log of the container before its restart.
    previous: bool = False
    #: Only the lines of this rank.
    rank: int | None = None
    #: Only the lines of this worker: its index or the name of its pod.
    worker: str | None = None

    @property
    def some(self) -> bool:
        """True if only the lines of some ranks are wanted."""
        return self.rank is not None or self.worker is not None

    def first(self) -> dict[str, str]:
        """Return the parameters of the first request."""
        query = {}
        if self.since is not None:
            query["sinceSeconds"] = str(max(1, round(self.since)))
        if self.since_time:
            query["sinceTime"] = self.since_time
        # How far back the last lines of a rank begin is known only once they are read.
        if self.tail is not None and not self.some:
            query["tailLines"] = str(max(1, self.tail))
        return query


async def logs(where: Where, *, job: str, wanted: Wanted) -> None:
    """Print the log. Raises NoSuchJob, NoSuchWorker, NotStarted and other `errors.KubeError`."""
    async with reached(where) as (client, namespace):
        assert namespace is not None
        log = LauncherLog(client, await pods.find_job(client, namespace, job), wanted)
        naming = _Naming(client, log, wanted)
        is_past, past = wanted.tail is not None, deque[bytes](maxlen=wanted.tail)
        async with aclosing(log.follow() if wanted.follow else log.once()) as lines:
            async for line in lines:
                if line is None:
                    is_past = False
                    for kept in past:
                        terminal.copy(kept)
                elif (text := await naming.named(line)) is not None:
                    if is_past:
                        past.append(text)
                    else:
                        terminal.copy(text)


class _Naming:
    """Chooses the lines of ranks, and names the workers of these lines."""

    def __init__(self, client: ApiReader, log: LauncherLog, wanted: Wanted) -> None:
        self._client = client
        self._log = log
        self._wanted = wanted
        self._worker = pods.worker_pod(log.job, wanted.worker) if wanted.worker is not None else ""
        self._lives: Lives | None = None
        self._looked_at: float | None = None

    async def named(self, line: LogLine) -> bytes | None:
        """Return a line as it is to be printed, None if the line is not wanted.

        Raises NotStarted and Unreachable if the lines of one worker are wanted and the ranks are
        unknown.
        """
        text = await self._of_worker(line)
        if text is None or not self._wanted.timestamps:
            return text
        return b" ".join((line.stamp, text))

    async def _of_worker(self, line: LogLine) -> bytes | None:
        if not self._wanted.some:
            return line.text
        await self._look()
        rank = printed_rank(line.text)
        if rank is None or self._wanted.rank not in (None, rank):
            return None
        if self._lives is None:
            return line.text
        workers = self._lives.pods(rank, at=line.at)
        if self._worker and self._worker not in workers:
            return None
        return f"{', '.join(workers) or 'ended'}: ".encode() + line.text

    async def _look(self) -> None:
        """Look at the ranks, unless the last look is less than RANKS_EVERY seconds old."""
        pod, is_first = self._log.pod, self._looked_at is None
        if pod is None or (
            self._looked_at is not None and time.monotonic() < self._looked_at + RANKS_EVERY
        ):
            return
        self._looked_at = time.monotonic()
        try:
            if pod.ended:
                raise NotStarted(f"{pod.launcher.ref.name} has ended")
            look = await exec_probes.ranks(
                self._client, self._log.job.metadata.namespace, pod.launcher
            )
        except errors.KubeError as error:
            if is_first:
                self._tell_not_known(error)
            return
        self._lives = self._lives or Lives()
        self._lives.add(look)
        if is_first and self._worker and not self._lives.has(self._worker):
            said = f"no rank runs in {self._worker}, so no line is known to come from it"
            if not self._wanted.follow:
                raise self._no_such_worker() or NotStarted(said)
            say(f"{names.PROGRAM}: {said} yet", err=True)

    def _no_such_worker(self) -> NoSuchWorker | None:
        """Return the error for a worker that the size does not have; None where it may have it."""
        job, facts = self._log.job.metadata.name, self._log.job.facts
        index = names.worker_index(self._worker, job=job)
        if index is None or index < facts.replicas or not facts.size_known:
            return None
        has = phrases.workers(facts.workers)
        return NoSuchWorker(f"{job} has no {self._worker}: it has {has}")

    def _tell_not_known(self, error: errors.KubeError) -> None:
        """Say that the ranks cannot be told apart; raise if nothing could be printed then."""
        if not self._worker:
            why = rights.in_words(error)
            said = f"it is not known which worker prints [{self._wanted.rank}]: {why}"
            say(f"{names.PROGRAM}: {said}; --rank means the number that Horovod prints", err=True)
            return
        if isinstance(error, errors.Unreachable):
            raise error
        raise NotStarted(
            f"it is not known which lines come from {self._worker}: {rights.in_words(error)}"
        ) from error


class LauncherLog:
    """Reads the log. job, pod: as they were at the last look."""

    def __init__(self, client: ApiReader, job: SeenJob, wanted: Wanted) -> None:
        self.job = job
        self.pod: LauncherPod | None = None
        self._client = client
        self._wanted = wanted
        self._position = Position(wanted.first())
        self._begun: LauncherPod | None = None
        self._complete = False
        self._is_past = wanted.tail is not None
        self._said = ""
        self._began: float | None = None

    async def once(self) -> AsyncGenerator[LogLine | None]:
        """Yield the lines that the log has now, and then None.

        Raises NotStarted and other `errors.KubeError`.
        """
        self.pod = await pods.find(self._client, self.job)
        if self.pod is None or not self.pod.started:
            raise NotStarted(
                f"{self._why_none()}; `{names.PROGRAM} explain {self.job.metadata.name}` says more"
            )
        async for line in self._read(self.pod, previous=self._wanted.previous):
            yield line
        yield None

    async def follow(self) -> AsyncGenerator[LogLine | None]:
        """Yield the lines until the job has ended, and None after the lines of the past.

        Lines of later containers and launchers are included. Raises NoSuchJob if the job is
        deleted, NotStarted if the job ended without a log, and other `errors.KubeError`.
        """
        while True:
            self.pod = await self._look()
            if self.pod and self.pod.started and not (self._complete and self._is_same(self.pod)):
                async for line in self._go_on(self.pod):
                    yield line
            elif self.job.facts.finished and self._begun is None:
                raise NotStarted(self._why_none())
            elif self.job.facts.finished:
                return
            elif self.pod is None or not self.pod.started:
                self._tell(self._why_none())
            await asyncio.sleep(POLL)

    async def _go_on(self, pod: LauncherPod) -> AsyncGenerator[LogLine | None]:
        """Yield the lines not read yet, up to the end of the container or of the connection."""
        before, self._begun, self._complete = self._begun, pod, False
        is_new = before is not None and before.uid != pod.uid
        if is_new:
            self._position = Position({})
        try:
            if before and pod.restarts > (0 if is_new else before.restarts):
                async for line in self._read(pod, previous=True):
                    yield line
            async for line in self._read(pod, follow=not self._is_past):
                yield line
        except errors.Unreachable:
            return  # the next look reports that the API server does not answer
        except errors.ApiError as error:
            self._let_pass(error, pod)
            return
        if self._is_past:
            yield None
        self._is_past, self._complete = False, pod.ended

    def _let_pass(self, error: errors.ApiError, pod: LauncherPod) -> None:
        """Say that a read is tried again; raise its error if that is of no use."""
        # The container is about to start, or gone.
        is_between = isinstance(error, errors.NotFound | errors.Invalid)
        is_over = pod.ended and self.job.facts.finished
        if is_over or not (is_between or errors.may_pass(error)):
            raise error
        if not is_between:
            self._tell(f"{error}; trying again")

    def _is_same(self, pod: LauncherPod) -> bool:
        return self._begun is not None and (self._begun.uid, self._begun.restarts) == (
            pod.uid,
            pod.restarts,
        )

    async def _read(
        self, pod: LauncherPod, *, follow: bool = False, previous: bool = False
    ) -> AsyncGenerator[LogLine]:
        """Yield the lines from the position on; none if another pod has taken the pod's place."""
        path = PODS.path(self.job.metadata.namespace, pod.launcher.ref.name, "log")
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        query = self._position.query(waited=now - self._began)
        query |= {"container": pod.launcher.container, "timestamps": "true"}
        query |= {"follow": "true"} if follow else {}
        query |= {"previous": "true"} if previous else {}
        ends = list[bytes]()
        async with self._client.stream(path, query=query, silence=SILENCE, ends=ends) as lines:
            again = await pods.find(self._client, self.job)
            if again is None or again.uid != pod.uid:
                return
            async for raw in lines:
                if line := self._position.take(raw):
                    self._said = ""
                    yield line
        # A line that a running container has not completed yet comes again, complete.
        for raw in ends if pod.ended or previous or not self._wanted.follow else ():
            if line := self._position.take(raw):
                yield line

    async def _look(self) -> LauncherPod | None:
        """Return the launcher, as soon as the API server answers.

        Raises NoSuchJob once the job is deleted.
        """
        name, uid = self.job.metadata.name, self.job.metadata.uid
        while True:
            try:
                self.job = await pods.find_job(self._client, self.job.metadata.namespace, name)
                if self.job.metadata.uid != uid:
                    raise NoSuchJob
                return await pods.find(self._client, self.job)
            except NoSuchJob:
                raise NoSuchJob(f"MPIJob {name} was deleted") from None
            except errors.KubeError as error:
                if not errors.may_pass(error):
                    raise
                self._tell(f"{error}; trying again")
                await asyncio.sleep(POLL)

    def _why_none(self) -> str:
        return self.pod.waits if self.pod else pods.absent(self.job)

    def _tell(self, words: str) -> None:
        if words != self._said:
            say(f"{names.PROGRAM}: {words}", err=True)
        self._said = words


class LogLine(NamedTuple):
    """A line of a log."""

    #: Seconds since the epoch, by the clock of the node.
    at: float
    #: The line without its line break.
    text: bytes
    #: The time as the kubelet wrote it; "" for the kubelet's own words.
    stamp: bytes = b""


class Position:
    """The position up to which the log of a pod has been read. Pure.

    Through restarts of the container too, no line is read twice, and no line is lost. The kubelet
    begins at a whole second (`sinceTime`), so some lines come again. Two lines may be equal with
    the same time, and lines of stdout and stderr may be out of order by a moment. So reading begins
    a second earlier than necessary, and every line since then is remembered.

    first: the parameters of the first request, which choose how much of the past is wanted.
    """

    def __init__(self, first: Mapping[str, str]) -> None:
        self._first = first
        self._newest = 0.0
        self._is_again = self._is_asked = False
        self._oldest: float | None = None
        self._recent: deque[tuple[float, bytes]] = deque()
        self._known: Counter[bytes] = Counter()

    def query(self, *, waited: float) -> dict[str, str]:
        """Return the parameters of the next request, and be ready for its lines.

        waited: seconds since the first request.
        """
        self._known = Counter(raw for _, raw in self._recent)
        self._is_again = self._newest > 0.0
        if self._is_again:
            return {"sinceTime": timestamp(self._begin)}
        is_first, self._is_asked = not self._is_asked, True
        if is_first:
            return {**self._first}
        since = {key: self._first[key] for key in ("sinceTime",) if key in self._first}
        if back := self._first.get("sinceSeconds"):
            since["sinceSeconds"] = str(int(back) + math.ceil(waited))
        return since

    def take(self, raw: bytes) -> LogLine | None:
        """Return the line that `raw` holds after its time.

        None if the line came before, or is older than the first wanted line.
        """
        if self._known[raw] > 0:
            self._known[raw] -= 1
            return None
        stamp, _, text = raw.partition(b" ")
        at = seconds(stamp.decode(errors="replace"))
        if at is None:  # words of the kubelet, which have no time
            at, text, stamp = self._newest, raw, b""
        if self._oldest is None:
            self._oldest = at
        elif at <= self._oldest and self._is_again and "tailLines" in self._first:
            return None
        self._newest = max(self._newest, at)
        self._recent.append((at, raw))
        while self._recent[0][0] < self._begin:
            self._recent.popleft()
        return LogLine(at, text, stamp)

    @property
    def _begin(self) -> float:
        return math.floor(self._newest) - OVERLAP

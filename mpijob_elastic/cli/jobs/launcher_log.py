"""The log of a job's launcher, and of its next launcher: read once, or followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import get, launcher_pod
from mpijob_elastic.cli.jobs.launcher_pod import LauncherPod, NotStarted
from mpijob_elastic.cli.jobs.log_position import Line, Position
from mpijob_elastic.cli.jobs.shown_facts import SeenJob
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.telemetry.terminal import say

# Seconds: between two looks at a pod, and without a byte until it is looked at again.
POLL = 1.0
SILENCE = 60.0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is wanted of a log. since: seconds back. tail: so many of the last lines. rank, worker: whose lines alone.

    previous: the log of the container before its restart.
    """

    follow: bool = False
    since: float | None = None
    tail: int | None = None
    previous: bool = False
    rank: int | None = None
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
        if self.tail is not None and not self.some:  # how far the last lines of a rank are back, only its lines show
            query["tailLines"] = str(max(1, self.tail))
        return query


class LauncherLog:
    """Reads the log. job, pod: at the last look."""

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

    async def once(self) -> AsyncGenerator[Line | None]:
        """Yield the lines that are there, and None. Raises NotStarted and other `errors.KubeError`."""
        self.pod = await launcher_pod.find(self._client, self.job)
        if self.pod is None or not self.pod.started:
            raise NotStarted(f"{self._why_none()}; `{names.PROGRAM} explain {self.job.metadata.name}` says more")
        async for line in self._read(self.pod, previous=self._wanted.previous):
            yield line
        yield None

    async def follow(self) -> AsyncGenerator[Line | None]:
        """Yield the lines until the job has ended, also of coming containers and launchers; None after the past.

        Raises NoSuchJob if the job is deleted, NotStarted if it ended without a log, and other `errors.KubeError`.
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

    async def _go_on(self, pod: LauncherPod) -> AsyncGenerator[Line | None]:
        """Yield the lines that are not read yet, up to the end of the container or of the connection."""
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
            return  # the next look says that nobody answers
        except errors.ApiError as error:
            is_passing = isinstance(error, errors.NotFound | errors.Invalid)  # it is about to start, or gone
            if (pod.ended and self.job.facts.finished) or not (is_passing or errors.may_pass(error)):
                raise
            if not is_passing:
                self._tell(f"{error}; trying again")
            return
        if self._is_past:
            yield None
        self._is_past, self._complete = False, pod.ended

    def _is_same(self, pod: LauncherPod) -> bool:
        return self._begun is not None and (self._begun.uid, self._begun.restarts) == (pod.uid, pod.restarts)

    async def _read(self, pod: LauncherPod, *, follow: bool = False, previous: bool = False) -> AsyncGenerator[Line]:
        """Yield the lines from the position on; nothing where the pod has meanwhile made room for another."""
        path, now = (
            PODS.path(self.job.metadata.namespace, pod.launcher.ref.name, "log"),
            asyncio.get_running_loop().time(),
        )
        self._began = now if self._began is None else self._began
        query = {
            **self._position.query(waited=now - self._began),
            "container": pod.launcher.container,
            "timestamps": "true",
        }
        query |= {"follow": "true"} if follow else {}
        query |= {"previous": "true"} if previous else {}
        ends = list[bytes]()
        async with self._client.stream(path, query=query, silence=SILENCE, ends=ends) as lines:
            again = await launcher_pod.find(self._client, self.job)
            if again is None or again.uid != pod.uid:
                return
            async for raw in lines:
                if line := self._position.take(raw):
                    self._said = ""
                    yield line
        # What a container that runs has not ended yet comes again, as a line.
        for raw in ends if pod.ended or previous or not self._wanted.follow else ():
            if line := self._position.take(raw):
                yield line

    async def _look(self) -> LauncherPod | None:
        """Return the launcher, as soon as the API server answers. Raises NoSuchJob once the job is deleted."""
        name, uid = self.job.metadata.name, self.job.metadata.uid
        while True:
            try:
                self.job = await launcher_pod.find_job(self._client, self.job.metadata.namespace, name)
                if self.job.metadata.uid != uid:
                    raise get.NoSuchJob
                return await launcher_pod.find(self._client, self.job)
            except get.NoSuchJob:
                raise get.NoSuchJob(f"MPIJob {name} was deleted") from None
            except errors.KubeError as error:
                if not errors.may_pass(error):
                    raise
                self._tell(f"{error}; trying again")
                await asyncio.sleep(POLL)

    def _why_none(self) -> str:
        return self.pod.waits if self.pod else launcher_pod.absent(self.job)

    def _tell(self, words: str) -> None:
        if words != self._said:
            say(f"{names.PROGRAM}: {words}", err=True)
        self._said = words

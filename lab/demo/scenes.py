"""The job, moment by moment: the report of `mpijob-elastic get JOB`, and the ranks."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from random import Random

import msgspec

from lab.demo import job
from lab.demo.ranks import Ranks, State
from lab.demo.stage import Stage
from mpijob_elastic import names
from mpijob_elastic.cli.jobs.fetch import Selection
from mpijob_elastic.cli.jobs.follow import follow
from mpijob_elastic.cli.jobs.report import JobReport, build
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter

DISCOVERY = 1.0  # seconds; DISCOVER_HOSTS_FREQUENCY_SECS in horovod/runner/elastic/driver.py
TICK = 0.1


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A moment. at: monotonic seconds. ranks: by host; empty where `kubectl exec` is not available."""

    at: float
    report: JobReport
    ranks: Mapping[str, State]


class Scenes:
    """Follows the job and drives its ranks; `next` gives every moment at which something changed, in order."""

    def __init__(self, stage: Stage, client: ApiWriter) -> None:
        self._stage = stage
        self._client = client
        self._report: JobReport | None = None
        self._ranks: dict[str, State] = {}
        self._queue: asyncio.Queue[Scene] = asyncio.Queue()

    @property
    def has_ranks(self) -> bool:
        """Return True if ranks can be shown here."""
        return self._stage.cluster.exec_offered

    async def next(self) -> Scene:
        """The next moment."""
        return await self._queue.get()

    async def follow(self) -> None:
        """Look at the job after each change, for ever."""
        selection = Selection(namespace=job.NAMESPACE, job=job.NAME)
        following = follow(self._client, selection, with_role=True, random=Random())  # noqa: S311 - jitter
        async with aclosing(following) as snapshots:
            async for snapshot in snapshots:
                self._report = build(snapshot, now=time.time()) if snapshot else None
                self._emit()

    async def drive(self) -> None:
        """Be Horovod's driver, for ever, from when the launcher runs."""
        while not self._launcher_knows():  # noqa: ASYNC110 - a tick is what a driver waits for anyway
            await asyncio.sleep(TICK)
        ranks = Ranks(self._stage.cluster, clock=time.monotonic)
        try:
            looked_at = 0.0
            while True:
                if self._launcher_knows() and time.monotonic() >= looked_at + DISCOVERY:
                    looked_at = time.monotonic()
                    ranks.discover(await self._script())
                ranks.commit()
                if ranks.states != self._ranks:
                    self._ranks = ranks.states
                    self._emit()
                await asyncio.sleep(TICK)
        finally:
            ranks.kill_all()

    def _launcher_knows(self) -> bool:
        # A kubelet would show a launcher that was touched the new file at once; here there is none.
        return bool(self._report and self._report.launcher and self._report.launcher.refreshed)

    async def _script(self) -> str:
        path = resources.CONFIG_MAPS.path(job.NAMESPACE, names.config_map(job.NAME))
        data: dict[str, str] = msgspec.json.decode(await self._client.get(path))["data"]
        return data[names.KEY_DISCOVER_HOSTS]

    def _emit(self) -> None:
        if self._report is not None:
            self._queue.put_nowait(Scene(at=time.monotonic(), report=self._report, ranks=self._ranks))


@asynccontextmanager
async def watched(stage: Stage) -> AsyncIterator[Scenes]:
    """Follow and drive for as long as the block lasts; an error in either ends the block."""
    async with await connect(user_agent="mpijob-elastic-demo", kubeconfig=stage.cluster.kubeconfig) as client:
        scenes = Scenes(stage, client)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(scenes.follow())]
            if scenes.has_ranks:
                tasks.append(group.create_task(scenes.drive()))
            try:
                yield scenes
            finally:
                for task in tasks:
                    task.cancel()

"""Soak: the jobs and their users, who resize them, run ranks in them, and replace them by new ones."""

import asyncio
import itertools
import time
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.sequence_place import unlike
from tests.lab.job import HOROVODRUN, MPIRUN, Job

JOBS = 100
MOST_WORKERS = 6
PLAIN_EVERY = 10  # each tenth job is plain mpirun
TRAINING_EVERY = 5  # of the jobs at rest
DRAIN_TIMEOUTS = ("0s", "5s", "20s")
# Seconds between two edits: what two cores bear beside other work.
PAUSE = 1.0, 2.0
RANKED, REPLACED = 0.5, 0.2  # shares of the edits
LONGEST_RANK = 30  # seconds; longer than the longest drain-timeout, so some are cut
PATIENCE = 300.0  # seconds for the whole fleet to become as asked
FOREVER = 100_000  # seconds
_RANK_PATIENCE = 10.0  # seconds to start one


@dataclass(kw_only=True)
class Asked:
    """A job and its size as asked; most: its largest size so far, since a plain job keeps all its workers."""

    job: Job
    size: int
    most: int
    elastic: bool

    @property
    def pods(self) -> list[str]:
        """The pods that it should have."""
        return [
            names.launcher(self.job.name),
            *self.job.workers(*range(self.size if self.elastic else self.most)),
        ]


class Fleet:
    """The jobs, in some namespaces, and what their users do; `random` chooses it."""

    def __init__(self, client: ApiWriter, namespaces: list[str], random: Random) -> None:
        self.asked: list[Asked] = []
        self.edits = 0
        self.refused: list[str] = []
        self._client = client
        self._namespaces = namespaces
        self._random = random
        self._numbers = itertools.count()

    async def create(self) -> None:
        """Create all jobs."""
        for number in range(JOBS):
            self.asked.append(await self._new(elastic=number % PLAIN_EVERY > 0))

    async def edit(self, *, seconds: float) -> None:
        """Edit one job after the other for so long. A refused edit is noted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(self._random.uniform(*PAUSE))
            index, what = self._random.randrange(JOBS), self._random.random()
            asked = self.asked[index]
            try:
                if what < REPLACED:
                    await asked.job.delete()
                    self.asked[index] = await self._new(elastic=asked.elastic)
                else:
                    await self._resize(asked, ranked=self._random.random() < RANKED)
            except errors.KubeError as error:
                self.refused.append(f"an edit of {asked.job.name} was refused: {error}")
            self.edits += 1

    async def as_asked(self) -> list[str]:
        """Wait until every job is as asked and no pod is left over; return what is not after PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        while wrong := await self._unlike():
            if time.monotonic() > deadline:
                return wrong
            await asyncio.sleep(2)
        return []

    async def _unlike(self) -> list[str]:
        elastic = [(asked.job, await asked.job.state()) for asked in self.asked if asked.elastic]
        wrong = [f"{job.name}: {lacks}" for job, state in elastic if (lacks := unlike(job, state))]
        pods = [pod for where in self._namespaces for pod in await self._pods(where)]
        running = {_name(pod) for pod in pods if pod["status"].get("phase") == "Running"}
        if (
            odd := running ^ {pod for asked in self.asked for pod in asked.pods}
            or {*map(_name, pods)} - running
        ):
            wrong.append(f"pods are too many, missing or do not run: {sorted(odd)}")
        return wrong

    async def _pods(self, namespace: str) -> list[Any]:
        found: list[Any] = msgspec.json.decode(await self._client.get(PODS.path(namespace)))[
            "items"
        ]
        return found

    async def train(self) -> None:
        """Start ranks that stay in all workers of some elastic jobs, so that looks find some busy at rest."""
        for asked in self.asked[1::TRAINING_EVERY]:
            for pod in asked.pods[1:]:
                await self._rank(asked.job, pod, FOREVER)

    async def _new(self, *, elastic: bool) -> Asked:
        """Create a job under a name that no job had."""
        namespace = self._random.choice(self._namespaces)
        job = Job(client=self._client, namespace=namespace, name=f"train-{next(self._numbers)}")
        size = self._random.randint(1, MOST_WORKERS)
        annotations = {names.DRAIN_TIMEOUT: self._random.choice(DRAIN_TIMEOUTS)}
        await job.create(
            replicas=size, command=HOROVODRUN if elastic else MPIRUN, annotations=annotations
        )
        return Asked(job=job, size=size, most=size, elastic=elastic)

    async def _resize(self, asked: Asked, *, ranked: bool) -> None:
        size = self._random.randint(1, MOST_WORKERS)
        seconds = self._random.randint(1, LONGEST_RANK)
        if ranked:
            # A worker that does not run yet gets none.
            ranks = (self._rank(asked.job, pod, seconds) for pod in asked.pods[1 + size :])
            await asyncio.gather(*ranks, return_exceptions=True)
        await asked.job.scale(size)
        asked.size, asked.most = size, max(asked.most, size)

    async def _rank(self, job: Job, pod: str, seconds: int) -> None:
        """Run a process in a worker for so long."""
        command = ["/bin/sh", "-c", f"sleep {seconds} >/dev/null 2>&1 &"]
        await exec_in_pod(
            self._client,
            job.namespace,
            pod,
            container="worker",
            command=command,
            timeout=_RANK_PATIENCE,
        )


def _name(pod: Any) -> str:
    name: str = pod["metadata"]["name"]
    return name

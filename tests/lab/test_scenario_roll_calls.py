"""Roll calls on a real API server: ranks and their execs are real processes, in workers and launcher.

A rank that dies is found within seconds. One whose exec is cut lives on, and so does its host name.
"""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.decide import roll_call
from mpijob_elastic.decide.ended_execs import ASKED_AFTER
from mpijob_elastic.decide.lost_ranks import LOST_AFTER
from tests.lab.job import Job, State
from tests.lab.ranks import in_pod, start_exec, start_rank
from tests.lab.test_scenario_incarnations import busy_looks, hosts
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("operator")]

SIZE = 3
# Seconds for a roll call, a look into the worker, and a look into the launcher, each with an exec.
FOUND_WITHIN = roll_call.APART + ASKED_AFTER + 5.0


@dataclass(kw_only=True)
class Training:
    """The processes of a job that trains."""

    cluster: Cluster
    job: Job
    folder: Path
    ranks: dict[str, str] = field(default_factory=dict)
    execs: dict[str, str] = field(default_factory=dict)

    async def start(self, controller: Controller) -> None:
        """Start all ranks, and wait until looks have seen each of them twice."""
        counted = busy_looks(controller)
        for pod in self.job.workers(*range(SIZE)):
            self.ranks[pod] = await asyncio.to_thread(start_rank, self.cluster, self.job, pod)
            self.execs[pod] = await asyncio.to_thread(
                start_exec, self.cluster, self.job, pod, folder=self.folder
            )
        deadline = time.monotonic() + 2 * PATIENCE
        while busy_looks(controller) < counted + 2 * SIZE:
            assert time.monotonic() < deadline, "the ranks are not seen"
            await asyncio.sleep(0.5)

    async def end_rank(self, pod: str) -> None:
        await asyncio.to_thread(in_pod, self.cluster, self.job, pod, f"kill -9 {self.ranks[pod]}")

    async def end_exec(self, pod: str) -> None:
        launcher = names.launcher(self.job.name)
        await asyncio.to_thread(
            in_pod, self.cluster, self.job, launcher, f"kill -9 {self.execs[pod]}"
        )

    async def end(self, pod: str) -> None:
        await self.end_rank(pod)
        await self.end_exec(pod)


@pytest.fixture
async def training(cluster: Cluster, job: Job, elastic: Controller, tmp_path: Path) -> Training:
    assert cluster.exec_offered
    await job.create(replicas=SIZE)
    await job.settled(SIZE)
    found = Training(cluster=cluster, job=job, folder=tmp_path)
    await found.start(elastic)
    return found


async def test_a_rank_that_dies_is_lost_within_seconds(job: Job, training: Training) -> None:
    pod = job.workers(1)[0]
    await training.end(pod)
    began = time.monotonic()

    def removed(state: State) -> bool:
        return state.hosts == hosts(job, 0, 0, 0)[::2]

    await job.until(removed, "worker-1 leaves the list", patience=LOST_AFTER)
    assert time.monotonic() - began < FOUND_WITHIN
    await job.until(lambda state: state.hosts == hosts(job, 0, 1, 0), "it is listed as .r1")


async def test_a_rank_whose_exec_is_cut_keeps_its_name(job: Job, training: Training) -> None:
    await training.end_exec(job.workers(1)[0])
    await asyncio.sleep(2 * roll_call.APART + ASKED_AFTER)
    assert (await job.settled(SIZE)).hosts == hosts(job, 0, 0, 0)


async def test_ranks_that_end_one_after_the_other_are_not_lost(
    job: Job, training: Training
) -> None:
    for pod in job.workers(*range(SIZE)):
        await training.end(pod)
        await asyncio.sleep(1)
    await asyncio.sleep(2 * roll_call.APART + ASKED_AFTER)
    assert (await job.settled(SIZE)).hosts == hosts(job, 0, 0, 0)

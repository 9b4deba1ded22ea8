"""Gangs beside the real Coscheduling of scheduler-plugins: all of a job's pods start, or none."""

import asyncio
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.resources import COSCHEDULING_POD_GROUPS
from tests.lab.job import Job
from tests.peers import coscheduling
from tests.peers.gpus import compete, group, on_gpu, priority, shrink_and_grow, start_without

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("coscheduler", "elastic", "operator")]

GANG = {"mpijob-elastic/gang": "coscheduling"}
PAGE = Path(__file__).parents[2] / "docs" / "gangs.md"
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "30s"}


async def create(job: Job, pool: str, *, replicas: int, annotations: dict[str, str], **more: str) -> None:
    """Create a job whose pods name the scheduler, each in its template."""
    ours = {"schedulerName": coscheduling.NAME, **more}
    await job.create(replicas=replicas, annotations=annotations, worker_spec=on_gpu(pool, **ours), launcher_spec=ours)


@pytest.mark.parametrize("annotations", [GANG, {}], ids=["gang", "no gang"])
async def test_of_two_jobs_for_which_there_is_room_once_one_starts(
    job: Job, pool: str, annotations: dict[str, str]
) -> None:
    """Without a gang each holds some, and both wait.

    Who gets what is chance: what was refused is not tried again at once, however urgent it is.
    """
    jobs = {name: replace(job, name=name) for name in ("one", "two")}
    rivals = partial(create, pool=pool, replicas=4, annotations=annotations)
    found = await compete(jobs["one"], jobs["two"], pool, lambda rival, more: rivals(rival, **more))
    assert (0 in found.values()) == bool(annotations)
    if annotations:
        waits, runs = (jobs[name] for name in sorted(found, key=lambda name: found[name]))
        assert (await group(waits, COSCHEDULING_POD_GROUPS)) == {"minMember": 5}
        await start_without(waits, runs)


async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(job: Job, pool: str) -> None:
    await create(job, pool, replicas=5, annotations=GANG | LEAST)
    await shrink_and_grow(job)
    assert (await group(job, COSCHEDULING_POD_GROUPS)) == {"minMember": 3}


async def test_a_preemption_takes_the_workers_that_kube_scheduler_chooses(job: Job, pool: str) -> None:
    """On a node that started last; no mark of a pod protects it, nor does its index.

    It may change its mind about where the urgent pods shall run, and then takes more than they need.
    """
    urgent = replace(job, name="urgent")
    await create(job, pool, replicas=4, annotations=GANG | LEAST)
    before = await job.settled(4)
    async with priority(job.client, pool, takes=True) as high:
        await create(urgent, pool, replicas=2, annotations=GANG, **high)
        await urgent.settled(2)
    after = await job.until(lambda state: len(state.hosts) == 2, "it goes on with two")
    assert before.launcher
    assert after.launcher
    assert after.launcher["metadata"]["uid"] == before.launcher["metadata"]["uid"]
    assert after.launcher_runs
    await job.told("Disruption", "DisruptionTarget")
    await urgent.delete()
    await job.until(lambda state: len(state.hosts) == 4, "it is whole again")


async def test_the_job_of_the_page_runs(job: Job, cluster: Cluster) -> None:
    [_, text, *_] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    await asyncio.to_thread(cluster.kubectl, "apply", "-n", job.namespace, "-f", "-", stdin=text)
    await job.settled(4)
    assert (await group(job, COSCHEDULING_POD_GROUPS)) == {"minMember": 3}

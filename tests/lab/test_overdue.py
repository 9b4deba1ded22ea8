"""A job that stops although its tenant keeps its workers from leaving in order, on a real API server."""

import asyncio

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.meta import MOST_VALUES
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.job import Job
from tests.lab.ranks import start_rank
from tests.lab.suspended import held
from tests.lab.waiting import LIMITS

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("elastic", "operator")]
QUICK = {"mpijob-elastic/drain-timeout": "3s"}
# Seconds; far above the drain-timeout, and far below a test's end.
SOON = 150.0


async def stops(job: Job) -> None:
    await job.annotate(suspend="true")
    async with asyncio.timeout(SOON):
        await job.until(lambda state: held(state, state.replicas), "gated pods only")


async def test_a_config_map_that_cannot_change_keeps_no_job_from_stopping(
    job: Job, cluster: Cluster
) -> None:
    await job.create(replicas=3, annotations=QUICK)
    await job.settled(3)
    start_rank(cluster, job, job.workers(2)[0])
    path = CONFIG_MAPS.path(job.namespace, f"{job.name}-config")
    await job.client.patch_object(
        path, body={"immutable": True}, content_type=MERGE_PATCH, limits=LIMITS
    )
    await stops(job)
    assert len((await job.state()).hosts) == 3, "nothing has changed the list"


@pytest.mark.parametrize("pod", ["launcher", "worker-1"])
async def test_a_pod_that_cannot_be_read_keeps_no_job_from_stopping(job: Job, pod: str) -> None:
    await job.create(replicas=3, annotations=QUICK)
    before = await job.settled(3)
    name = f"{job.name}-{pod}"
    await job.annotate_pod(name, {f"a{number}": "" for number in range(MOST_VALUES)})
    await job.told("ObjectUnreadable", name)
    await stops(job)
    after = await job.state()
    uids = {one: found["metadata"]["uid"] for one, found in before.workers.items()}
    assert not {*uids.values()} & {one["metadata"]["uid"] for one in after.workers.values()}

"""A job that KubeQueue holds and releases, as its extensions do; a double stands for KubeQueue itself."""

from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from tests.lab.job import Job
from tests.lab.kube_queue import Extension, served
from tests.lab.suspended import held

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("operator", "elastic")]


@pytest.fixture
def extension(cluster: Cluster, job: Job) -> Iterator[Extension]:
    with served(cluster):
        yield Extension(cluster, job)


async def test_a_job_waits_until_its_queue_unit_is_dequeued(extension: Extension, job: Job) -> None:
    await extension.submit(workers=2)
    told = "suspended by annotation scheduling.x-k8s.io/suspend"
    await job.until(lambda state: held(state, 2) and told in state.notices, "gated pods")
    await extension.sync()
    assert held(await job.at_rest(), 2)
    await extension.say("Dequeued")
    await extension.sync()
    await job.settled(2)
    assert await extension.waits()
    await job.delete()
    await job.until(lambda state: not state.replicas, "no MPIJob")
    await extension.sync()
    assert not await extension.waits()

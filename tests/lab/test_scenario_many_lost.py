"""Most workers of a job are lost at once, as with the nodes of a zone: it is whole again after one wait."""

import asyncio

import pytest

from lab.replicas import Controller
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job

pytestmark = pytest.mark.lab
SIZE = 32


@pytest.mark.thorough
@pytest.mark.usefixtures("operator")
async def test_thirty_of_32_workers_fail_at_once(
    client: ApiWriter, namespace: str, elastic: Controller
) -> None:
    assert elastic.ready()
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=SIZE)
    before, lost = await job.settled(SIZE), job.workers(*range(2, SIZE))
    await asyncio.gather(*(job.set_status(pod, {"phase": "Failed"}) for pod in lost))
    await job.replaced(before, *lost)
    after = await job.settled(SIZE)
    assert sorted(after.hosts) == sorted(
        [f"{pod}:1" for pod in job.workers(0, 1)] + [f"{pod}.r1:1" for pod in lost]
    )

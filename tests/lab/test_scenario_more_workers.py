"""More workers are Ready than a job asks for: its users see the size that they asked for, and nothing of the others."""

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator import objects
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.controllers import leading
from tests.lab.history import recorded
from tests.lab.job import Job

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook", "operator")]
SIZE, MORE = 2, (2, 5)


@pytest.mark.thorough
async def test_ready_workers_beyond_the_size_are_never_listed_and_are_deleted(
    cluster: Cluster, job: Job, client: ApiWriter
) -> None:
    """The operator leaves them alone: they come from an old cache of its own, or from a size that was edited twice."""
    async with leading(cluster.kubeconfig, job.namespace):
        await job.create(replicas=SIZE, annotations={"mpijob-elastic/drain-timeout": "1s"})
        await job.settled(SIZE)
    found = msgspec.json.decode(await client.get(resources.MPI_JOBS.path(job.namespace, job.name)))
    for index in MORE:
        await client.create_object(
            resources.PODS.path(job.namespace), body=objects.worker(found, index)
        )
    phases = ["Running"] * (SIZE + len(MORE))
    await job.until(
        lambda state: [pod["status"]["phase"] for pod in state.workers.values()] == phases,
        "more workers",
    )
    async with (
        recorded(client, job.namespace, job=job.name) as history,
        leading(cluster.kubeconfig, job.namespace),
    ):
        await job.settled(SIZE)
        assert (await job.at_rest()).notices == ""
    assert sorted(history.deleted()) == job.workers(*MORE)
    scripts = [config["data"]["discover_hosts.sh"] for config in history.configs]
    assert not [pod for pod in job.workers(*MORE) for script in scripts if f"{pod}:" in script]

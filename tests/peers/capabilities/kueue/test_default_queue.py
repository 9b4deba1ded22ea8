"""A new job that names no queue waits in the LocalQueue `default` of its namespace, as Kueue's own kinds of jobs do."""

import json

import pytest

from lab.cluster import Cluster
from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import DEFAULT_QUEUE, LABEL_QUEUE
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job
from tests.lab.launchers import tried
from tests.lab.waiting import seen
from tests.peers.queued_jobs import ONE_GPU, ends_quietly, waits_for_gpus, workloads
from tests.peers.queues import queue_of_four

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]


async def given(client: ApiWriter, namespace: str) -> str | None:
    """Return the queue that a new job without a label would get."""
    asked = objects.mpi_job()
    body = {**asked, "metadata": {"name": "asked", "namespace": namespace}}
    made = await tried(client, MPI_JOBS, namespace, body)
    queue: str | None = made["metadata"].get("labels", {}).get(LABEL_QUEUE)
    return queue


async def queue_of(job: Job) -> str | None:
    """Return the queue that a job names."""
    stored = json.loads(await job.client.get(MPI_JOBS.path(job.namespace, job.name)))
    queue: str | None = stored["metadata"].get("labels", {}).get(LABEL_QUEUE)
    return queue


async def test_new_jobs_wait_in_the_default_queue_and_older_ones_go_on(
    cluster: Cluster, job: Job, client: ApiWriter
) -> None:
    older = Job(client=client, namespace=job.namespace, name="older")
    await older.create(replicas=1, worker_spec=ONE_GPU)
    await older.settled(1)
    queue_of_four(cluster, job.namespace, name=DEFAULT_QUEUE)
    await seen(
        lambda: given(client, job.namespace), lambda queue: queue == DEFAULT_QUEUE, "the queue"
    )
    first = Job(client=client, namespace=job.namespace, name="first")
    await first.create(replicas=4, worker_spec=ONE_GPU)
    await first.settled(4)
    assert await queue_of(first) == DEFAULT_QUEUE
    assert (await workloads(first))["first-launcher"]["spec"]["queueName"] == DEFAULT_QUEUE
    await job.create(replicas=2, worker_spec=ONE_GPU)
    await waits_for_gpus(job)
    assert await queue_of(older) is None
    assert await workloads(older) == {}
    await first.set_status("first-launcher", {"phase": "Succeeded"})
    await job.settled(2)
    await ends_quietly(job)


async def test_a_namespace_may_have_a_default_queue_for_other_jobs_alone(
    cluster: Cluster, job: Job, client: ApiWriter
) -> None:
    queue_of_four(cluster, job.namespace, name=DEFAULT_QUEUE)
    await seen(
        lambda: given(client, job.namespace), lambda queue: queue == DEFAULT_QUEUE, "the queue"
    )
    body = {"metadata": {"labels": {names.NO_DEFAULT_QUEUE: "disabled"}}}
    path = NAMESPACES.path(None, job.namespace)
    await client.patch_object(path, body=body, content_type=MERGE_PATCH)
    await seen(lambda: given(client, job.namespace), lambda queue: queue is None, "no queue")
    await job.create(replicas=1, worker_spec=ONE_GPU)
    await job.settled(1)
    assert await queue_of(job) is None

"""`kubectl scale` through the whole path, and the selector that an HPA reads: it stays, whatever writes the status."""

import asyncio
import signal
from collections.abc import AsyncIterator
from functools import partial

import msgspec
import pytest

from bench.audit import Tail, Write
from lab.cluster import Cluster
from lab.replicas import Webhook
from mpijob_elastic.kube import resources
from tests.lab.controllers import written
from tests.lab.job import Job, Object
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

QUICK = {"mpijob-elastic/drain-timeout": "1s"}
SELECTOR = "group-name=kubeflow.org,mpi-job-name=train,mpi-job-role=worker"


@pytest.fixture
async def away(webhook: Webhook) -> AsyncIterator[None]:
    """No webhook answers; to be asked for after what needs it."""
    yield
    webhook.signal(signal.SIGCONT)


async def scale_of(job: Job) -> Object:
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name, "scale"))
    found: Object = msgspec.json.decode(raw)
    return found


async def shows(job: Job, *, replicas: int, active: int) -> None:
    """Wait until the Scale object says so, with the selector of the workers."""
    wanted = {"replicas": active, "selector": SELECTOR}
    await seen(
        partial(scale_of, job),
        lambda scale: (scale["spec"], scale["status"]) == ({"replicas": replicas}, wanted),
        f"{replicas} wanted, {wanted}",
    )


async def kubectl_scale(cluster: Cluster, job: Job, replicas: int) -> None:
    where = ("-n", job.namespace, f"mpijob/{job.name}")
    await asyncio.to_thread(cluster.kubectl, "scale", *where, f"--replicas={replicas}")


def status_writes(tail: Tail, job: Job) -> list[Write]:
    """The writes of the job's status by the controller."""
    parts = ("mpijobs", "status")
    return [
        write
        for write in written(tail, job.namespace)
        if (write.resource, write.subresource) == parts
    ]


async def test_kubectl_scale_there_and_back(job: Job, cluster: Cluster) -> None:
    tail = Tail(cluster.audit_log)
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    for replicas in (4, 1, 3):
        await kubectl_scale(cluster, job, replicas)
        await job.settled(replicas)
        await shows(job, replicas=replicas, active=replicas)
    assert status_writes(tail, job) == []  # the webhook saw to it, within the operator's own writes
    selected = cluster.kubectl(
        "get", "pods", "-n", job.namespace, "-l", SELECTOR, "-o", "name"
    ).split()
    assert selected == [f"pod/{name}" for name in job.workers(0, 1, 2)]


@pytest.mark.thorough
async def test_while_the_webhook_is_away_the_controller_sees_to_it(
    job: Job, cluster: Cluster, webhook: Webhook, away: None
) -> None:
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    webhook.signal(signal.SIGSTOP)
    tail = Tail(cluster.audit_log)
    await kubectl_scale(cluster, job, 3)
    await job.settled(3)
    await shows(job, replicas=3, active=3)

    async def writes() -> list[Write]:
        return status_writes(tail, job)

    await seen(writes, bool, "a write of the controller")  # logged once it is answered


@pytest.mark.thorough
async def test_what_somebody_took_out_comes_back_and_then_nothing_is_written(
    job: Job, cluster: Cluster
) -> None:
    """The webhook puts it back into that very write."""
    await job.create(replicas=2)
    await job.settled(2)
    await shows(job, replicas=2, active=2)
    path = resources.MPI_JOBS.path(job.namespace, job.name, "status")
    patch = [{"op": "remove", "path": "/status/replicaStatuses/Worker/selector"}]
    await job.client.patch_object(path, body=patch, content_type="application/json-patch+json")
    await shows(job, replicas=2, active=2)
    await job.at_rest()
    tail, version = Tail(cluster.audit_log), await version_of(job)
    await asyncio.sleep(2)
    assert (status_writes(tail, job), await version_of(job)) == ([], version)


async def version_of(job: Job) -> str:
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name))
    version: str = msgspec.json.decode(raw)["metadata"]["resourceVersion"]
    return version

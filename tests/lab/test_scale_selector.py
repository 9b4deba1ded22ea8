"""`kubectl scale` through the whole path, and the selector that an HPA reads: it stays, whatever writes the status."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from functools import partial

import msgspec
import pytest

from lab.cluster import Cluster
from lab.replicas import Controller, Webhook
from mpijob_elastic.kube import resources
from tests.lab.job import Job, Object
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

QUICK = {"mpijob-elastic/drain-timeout": "1s"}
SELECTOR = "group-name=kubeflow.org,mpi-job-name=train,mpi-job-role=worker"
WRITES = re.compile(
    r'^mpijob_elastic_api_writes_total\{outcome="ok",resource="mpijobs/status".*\} (\S+)$', re.MULTILINE
)


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


def status_writes(controller: Controller) -> float:
    found = WRITES.search(controller.metrics())
    return float(found[1]) if found else 0.0


async def test_kubectl_scale_there_and_back(job: Job, cluster: Cluster, elastic: Controller) -> None:
    before = status_writes(elastic)
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    for replicas in (4, 1, 3):
        await kubectl_scale(cluster, job, replicas)
        await job.settled(replicas)
        await shows(job, replicas=replicas, active=replicas)
    assert status_writes(elastic) == before  # the webhook saw to it, within the operator's own writes
    selected = cluster.kubectl("get", "pods", "-n", job.namespace, "-l", SELECTOR, "-o", "name").split()
    assert selected == [f"pod/{name}" for name in job.workers(0, 1, 2)]


@pytest.mark.thorough
async def test_while_the_webhook_is_away_the_controller_sees_to_it(
    job: Job, cluster: Cluster, elastic: Controller, webhook: Webhook, away: None
) -> None:
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    webhook.signal(signal.SIGSTOP)
    before = status_writes(elastic)
    await kubectl_scale(cluster, job, 3)
    await job.settled(3)
    await shows(job, replicas=3, active=3)
    assert status_writes(elastic) > before


@pytest.mark.thorough
async def test_what_somebody_took_out_comes_back_and_then_nothing_is_written(job: Job, elastic: Controller) -> None:
    """The webhook puts it back into that very write."""
    await job.create(replicas=2)
    await job.settled(2)
    await shows(job, replicas=2, active=2)
    path = resources.MPI_JOBS.path(job.namespace, job.name, "status")
    patch = [{"op": "remove", "path": "/status/replicaStatuses/Worker/selector"}]
    await job.client.patch_object(path, body=patch, content_type="application/json-patch+json")
    await shows(job, replicas=2, active=2)
    await job.at_rest()
    writes, version = status_writes(elastic), await version_of(job)
    await asyncio.sleep(2)
    assert (status_writes(elastic), await version_of(job)) == (writes, version)


async def version_of(job: Job) -> str:
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name))
    version: str = msgspec.json.decode(raw)["metadata"]["resourceVersion"]
    return version

"""Who scales is told: a bound and its source, what a dry run would do; seen as kubectl shows it."""

import asyncio
from functools import partial

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import HOROVODRUN, Job
from tests.lab.scalable import told
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "webhook")]

BOUNDS = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/max-replicas": "6"}


@pytest.fixture
async def job(client: ApiWriter, cluster: Cluster, namespace: str) -> Job:
    """A job of 3 workers that the webhook knows, with bounds."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=3, command=HOROVODRUN, annotations=BOUNDS)
    await reported(job, "Running")
    tried = partial(scaled, cluster, job, 4, "--dry-run=server")
    await seen(tried, lambda answer: "worker-3" in answer[1], "the webhook knows the job")
    return job


async def reported(job: Job, *conditions: str) -> None:
    """Write the job's status as the operator would."""
    found = [{"type": kind, "status": "True", "reason": kind} for kind in conditions]
    path = resources.MPI_JOBS.path(job.namespace, job.name, "status")
    await job.client.patch_object(path, body={"status": {"conditions": found}}, content_type=MERGE_PATCH)


async def scaled(cluster: Cluster, job: Job, replicas: int, *options: str) -> tuple[int, str]:
    command = ("scale", f"mpijob/{job.name}", "-n", job.namespace, f"--replicas={replicas}", *options)
    return await asyncio.to_thread(told, cluster, *command)


async def size(job: Job) -> int:
    return (await job.state()).replicas


async def test_beyond_the_bounds_is_refused_and_the_bound_is_named(job: Job, cluster: Cluster) -> None:
    code, said = await scaled(cluster, job, 7)
    assert code
    assert "spec.replicas: 7 is above metadata.annotations[mpijob-elastic/max-replicas] (6); use 2 to 6" in said
    assert await size(job) == 3


async def test_a_dry_run_shows_what_would_happen_and_changes_nothing(job: Job, cluster: Cluster) -> None:
    code, said = await scaled(cluster, job, 2, "--dry-run=server")
    assert code == 0
    assert "Warning: would scale 3→2: worker-2 drains for at most 1m, then is deleted\n" in said
    assert await size(job) == 3


async def test_changed_bounds_hold_at_once(job: Job, cluster: Cluster) -> None:
    await job.annotate(max_replicas="8")
    await seen(partial(scaled, cluster, job, 7), lambda answer: answer[0] == 0, "the new bound")
    assert await size(job) == 7

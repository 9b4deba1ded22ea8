"""Sizes that a user, an HPA and `fill` change many times a second, of a job in a queue of Kueue and of one in none."""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.capabilities.autoscaling.metrics_api import Values, serving
from tests.lab.history import most_requested, recorded
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job
from tests.peers.queued_jobs import ONE_GPU, ends_quietly

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("kueue_serves", "scale_served", "elastic", "operator"),
]
QUOTA, MOST = 4, 6
# Each event that comes before mpi-operator has looked at a job doubles the time for which it puts
# the job off (docs/troubleshooting.md): after bursts of twelve edits it made no worker for nearly
# three minutes.
BURSTS, EDITS, PUT_OFF = 4, 5, 400.0
# Writes of the host list, its memory included, that an edit may lead to.
WRITES_AN_EDIT = 4


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """A metrics API, whose value the test changes as often as the size."""
    with serving(cluster, tmp_path_factory.mktemp("metrics")) as values:
        yield values


async def looked(metrics: Values, job: Job) -> None:
    """Wait until the HPA has read its metric once more."""
    before = metrics.reads[job.namespace, "queue"]
    await job.until(
        lambda _: metrics.reads[job.namespace, "queue"] > before, "it is read once more"
    )


@pytest.mark.parametrize("queued", [True, False], ids=["queued", "in no queue"])
async def test_three_who_change_a_size_many_times_a_second_leave_a_job_of_the_last_size(
    job: Job,
    client: ApiWriter,
    cluster: Cluster,
    hpa: Autoscaler,
    metrics: Values,
    queue: str,
    queued: bool,
) -> None:
    random = Random(25)
    metrics.external["queue"] = 3
    bounds = {"mpijob-elastic/min-replicas": "1", "mpijob-elastic/max-replicas": str(MOST)}
    annotations = {
        **bounds,
        "mpijob-elastic/drain-timeout": "1s",
        "mpijob-elastic/autoscale": "fill",
    }
    labels = {LABEL_QUEUE: queue} if queued else {}
    async with recorded(client, job.namespace, job=job.name) as history:
        await job.create(
            replicas=3, worker_spec=ONE_GPU, annotations=annotations, job_labels=labels
        )
        await job.until(
            lambda state: state.launcher_runs and len(state.hosts) >= 1, "a worker that trains"
        )
        await hpa.apply(1, MOST)
        for _ in range(BURSTS):
            async with asyncio.TaskGroup() as users:
                for _ in range(EDITS):
                    metrics.external["queue"] = random.randint(1, MOST)
                    users.create_task(job.scale(random.randint(1, MOST)))
            await looked(metrics, job)
        await job.annotate(autoscale=None)
        await asyncio.to_thread(cluster.kubectl, "delete", "hpa", hpa.name, "-n", job.namespace)
        await asyncio.sleep(3)  # a write of theirs may be under way
        await job.scale(3)
        await job.until(lambda state: len(state.workers) == 3, "three workers", patience=PUT_OFF)
        await job.settled(3)
        await ends_quietly(job)
    assert history.deleted_while_published() == []
    assert history.mixed_changes() == []
    assert len(history.configs) <= WRITES_AN_EDIT * BURSTS * EDITS
    if queued:
        assert most_requested("nvidia.com/gpu", history) <= QUOTA

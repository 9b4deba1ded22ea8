"""KEDA scales an MPIJob by the length of its queue, with the ScaledObject of docs/examples/hpa."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.peers.capabilities.autoscaling.keda import Keda
from tests.peers.capabilities.autoscaling.metrics_pipeline import Exporters
from tests.peers.capabilities.autoscaling.scaled_object import ScaledObject
from tests.peers.prometheus import Prometheus

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("scale_served", "elastic", "operator"),
]
QUICK = {"mpijob-elastic/drain-timeout": "1s"}
BOUNDS = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/max-replicas": "8"}
LOOKS = 4.0  # seconds in which the HPA and KEDA look four times


class Queue:
    """The length of a job's queue, as Prometheus scrapes it."""

    def __init__(self, exporters: Exporters, namespace: str) -> None:
        self._gauge = exporters.queue
        self._labels = (namespace, "train")

    def holds(self, batches: int) -> None:
        self._gauge.labels(*self._labels).set(batches)

    def is_lost(self) -> None:
        """No program says any more how long it is."""
        self._gauge.remove(*self._labels)


@pytest.fixture(scope="module")
def exporters() -> Exporters:
    """The program that fills queues."""
    return Exporters()


@pytest.fixture(scope="module")
def prometheus_url(
    cluster: Cluster,
    exporters: Exporters,
    keda: Keda,
    prometheus: Path,
    scale_served: None,  # KEDA keeps what it once found of a kind
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Prometheus, which scrapes the queues, with KEDA beside it."""
    with ExitStack() as stack:
        jobs = stack.enter_context(exporters.scraped())
        scraping = stack.enter_context(
            Prometheus.start(prometheus, tmp_path_factory.mktemp("prometheus"), jobs=jobs)
        )
        stack.enter_context(keda.serving(cluster, tmp_path_factory.mktemp("keda")))
        yield scraping.url


@pytest.fixture
def queue(exporters: Exporters, job: Job) -> Queue:
    return Queue(exporters, job.namespace)


@pytest.fixture
def scaled(cluster: Cluster, client: ApiWriter, job: Job, prometheus_url: str) -> ScaledObject:
    """A ScaledObject that the test creates for its job."""
    return ScaledObject(cluster=cluster, client=client, job=job, prometheus=prometheus_url)


async def generation(job: Job) -> int:
    """Return what each change of the job's spec counts up."""
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name))
    found: dict[str, Any] = msgspec.json.decode(raw)["metadata"]
    return int(found["generation"])


async def stays(job: Job, replicas: int) -> None:
    """Hold that nobody changes the job while HPA and KEDA look again."""
    before = await generation(job)
    await asyncio.sleep(LOOKS)
    assert ((await job.state()).replicas, await generation(job)) == (replicas, before)


async def grow(queue: Queue, job: Job, scaled: ScaledObject) -> None:
    """Let KEDA scale a job of two workers to four."""
    queue.holds(390)
    await job.create(replicas=2, annotations=QUICK | BOUNDS)
    await job.settled(2)
    await scaled.apply()
    await job.settled(4)


async def test_a_job_follows_its_queue_up_and_down(
    queue: Queue, job: Job, scaled: ScaledObject
) -> None:
    """A hundred batches for each worker; the smallest size stays for an empty queue."""
    await grow(queue, job, scaled)
    seen = await scaled.hpa.until(lambda seen: seen.desired == 4)
    assert seen.says("ScalingActive", "True", "ValidMetricFound", "s0-prometheus")
    queue.holds(250)
    await job.settled(3)
    queue.holds(0)
    await job.settled(2)
    await job.told("Draining", "train-worker-3")
    await scaled.says("Active", "False")
    await scaled.says("HPAActive", "True")
    await stays(job, 2)


@pytest.mark.parametrize("what", ["queue", "prometheus"])
async def test_a_length_that_is_unknown_changes_no_size(
    what: str, queue: Queue, job: Job, scaled: ScaledObject
) -> None:
    """Else a crash of the program that fills the queue, or of Prometheus, would shrink the job."""
    await grow(queue, job, scaled)
    if what == "queue":
        queue.is_lost()
    else:
        await scaled.at("http://127.0.0.1:1").apply()
    await scaled.says("Fallback", "True")
    await stays(job, 4)
    queue.holds(120)
    await scaled.apply()
    await job.settled(2)
    await scaled.says("Fallback", "False")


async def test_scale_to_zero_ends_at_one_worker(
    queue: Queue, job: Job, scaled: ScaledObject
) -> None:
    """The HPA wants one worker then, and KEDA itself none, which is refused."""
    queue.holds(190)
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    await scaled.apply(minReplicaCount=None, fallback=None)
    queue.holds(0)
    await job.settled(1)
    said = await scaled.warned("KEDAScaleTargetDeactivationFailed")
    assert said.startswith("Failed to deactivate kubeflow.org/v1.MPIJob")
    await stays(job, 1)
    queue.holds(190)
    await job.settled(2)

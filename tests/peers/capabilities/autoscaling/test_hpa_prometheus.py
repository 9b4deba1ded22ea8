"""HPAs whose metrics come from Prometheus and prometheus-adapter, by the rules and metrics of docs/examples/hpa."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job
from tests.peers.capabilities.autoscaling.metrics_pipeline import EXAMPLES, Exporters, serving

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("scale_served", "elastic", "operator"),
]
QUICK = {"mpijob-elastic/drain-timeout": "1s"}


@pytest.fixture(scope="module")
def exporters(
    cluster: Cluster,
    prometheus: Path,
    prometheus_adapter: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Exporters]:
    """What Prometheus scrapes; tests set the values."""
    directory: Path = tmp_path_factory.mktemp("metrics")
    with serving(cluster, directory, prometheus=prometheus, adapter=prometheus_adapter) as found:
        yield found


def metric(name: str) -> dict[str, Any]:
    """Return the only metric of an example."""
    [found] = yaml.safe_load((EXAMPLES / name).read_text())["spec"]["metrics"]
    return dict(found)


async def test_a_job_follows_its_queue_up_and_down(
    exporters: Exporters, job: Job, hpa: Autoscaler
) -> None:
    """A hundred batches for each worker; another queue of the namespace does not count."""
    exporters.queue.labels(job.namespace, "train").set(390)
    exporters.queue.labels(job.namespace, "other").set(800)
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    assert await hpa.apply(2, 8, metric=metric("queue.yaml")) == ""
    await job.settled(4)
    exporters.queue.labels(job.namespace, "train").set(120)
    await job.settled(2)
    seen = await hpa.until(lambda seen: seen.desired == 2)
    assert seen.says("ScalingActive", "True", "ValidMetricFound", "train_queue_length")

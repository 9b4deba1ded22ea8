"""Ranks that need long to start: Horovod's driver loses a change of the list meanwhile, and the controller repeats it.

A rank sleeps before it imports Horovod, as if its imports took so long. A second change follows the
first while ranks start: rank 0 does not hear of it ([horovod] common/elastic.py, on_reset).
"""

import time
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob, example, workers
from mpijob_elastic import names
from tests.real.pods import until

# Seconds that a rank sleeps, and that the second change comes after the first.
START, LATER = 6, 4.0
ENVIRONMENT = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", "STEP_SECONDS": "0.25"}


def slow(size: int) -> dict[str, Any]:
    """The example with this many workers, whose ranks start slowly."""
    manifest = example()
    specs = manifest["spec"]["mpiReplicaSpecs"]
    specs["Worker"]["replicas"] = size
    command = specs["Launcher"]["template"]["spec"]["containers"][0]["command"]
    command[-2:] = ["sh", "-c", f"sleep {START}; exec python3 /examples/train.py"]
    return manifest


@pytest.fixture
def slow_job(cluster: Cluster, namespace: str) -> TrainingJob:
    return TrainingJob(cluster=cluster, namespace=namespace)


def await_training(job: TrainingJob, size: int, *, since: float) -> None:
    """Wait until exactly the first workers train, and no other worker is there."""
    step = until(
        f"{size} ranks train", lambda: training.first_with(job.log().steps, size=size, since=since)
    )
    assert set(step.hosts) == set(workers(size))
    until(
        f"only {size} workers are there",
        lambda: set(job.pods()) == {*workers(size), names.launcher(job.name)} or None,
    )


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("scale_served", "training_image", "operator", "elastic")
@pytest.mark.parametrize(
    ("begin", "first", "then"),
    [
        pytest.param(1, 2, 3, id="a worker is added while another starts"),
        pytest.param(3, 4, 2, id="workers are removed while another starts"),
    ],
)
def test_a_change_while_ranks_start_is_followed_without_harm(
    slow_job: TrainingJob, begin: int, first: int, then: int
) -> None:
    slow_job.create(ENVIRONMENT, manifest=slow(begin))
    await_training(slow_job, begin, since=0)
    slow_job.edit(first)
    time.sleep(LATER)
    edited = time.time()
    slow_job.edit(then)
    await_training(slow_job, then, since=edited)
    assert training.harm(slow_job.log()) == []

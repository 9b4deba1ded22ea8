"""Real Elastic Horovod that ends as planned, or changes its size: nothing of that is taken for a loss.

Ranks end by themselves, one after the other, while looks into launcher and workers go on.
"""

import json
import time
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.training.job import TrainingJob, example, workers
from mpijob_elastic.decide import lost_ranks
from mpijob_elastic.decide.ended_execs import SETTLED
from tests.real.pods import until
from tests.real.resizes import train_through

pytestmark = pytest.mark.usefixtures("own_node", "training_image", "operator", "elastic")

SIZE = 3
# Seconds between the ends of two ranks: a look for the first comes while the others still run.
APART = 6
STEP_SECONDS = 0.5
# By then looks have seen all ranks for so long that the end of one might be a loss.
STEPS = int((lost_ranks.LOOK_SOON + lost_ranks.LOOK_SELDOM + 2 * SETTLED) / STEP_SECONDS)
OF_A_LOSS = {"RankLost", "HostsLost", "HostRenamed", "HostListRepeated", "WorkerGivenUp"}


def ending_late() -> dict[str, Any]:
    """The example with three workers, whose ranks end one after the other."""
    manifest = example()
    specs = manifest["spec"]["mpiReplicaSpecs"]
    specs["Worker"]["replicas"] = SIZE
    [launcher] = specs["Launcher"]["template"]["spec"]["containers"]
    python = " ".join(launcher["command"][-2:])
    end = f"{python}; code=$?; sleep $(({APART} * HOROVOD_RANK)); exit $code"
    launcher["command"][-2:] = ["sh", "-c", end]
    return manifest


def reasons(cluster: Cluster, namespace: str) -> set[str]:
    """The reasons of all Events in a namespace."""
    events = ("get", "events", "-o", "jsonpath={.items[*].reason}")
    return set(cluster.kubectl("-n", namespace, *events).split())


def script(cluster: Cluster, namespace: str) -> str:
    found = cluster.kubectl("-n", namespace, "get", "configmap", "train-config", "-o", "json")
    text: str = json.loads(found)["data"]["discover_hosts.sh"]
    return text


def test_no_rank_that_ends_as_planned_is_lost(cluster: Cluster, namespace: str) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    environment = {
        "TARGET_STEPS": str(STEPS),
        "TARGET_LOSS": "1000",  # any will do
        "STEP_SECONDS": str(STEP_SECONDS),
    }
    job.create(environment, manifest=ending_late())
    until("all train", lambda: _all_train(job))
    before = script(cluster, namespace)
    until("the last step", lambda: job.log().steps[-1].step >= STEPS or None, patience=300)
    stepped_at = time.time()
    outcome = until(
        "the end of the job",
        lambda: job.outcome() if job.outcome() != "Running" else None,
        patience=120,
    )
    took = time.time() - stepped_at
    assert outcome == "Succeeded"
    assert took >= APART * (SIZE - 1) - 1
    assert reasons(cluster, namespace) & OF_A_LOSS == set()
    assert script(cluster, namespace) == before


def _all_train(job: TrainingJob) -> bool | None:
    steps = job.log().steps
    return (bool(steps) and set(steps[-1].hosts) == set(workers(SIZE))) or None


def test_no_rank_that_leaves_as_planned_is_lost(cluster: Cluster, namespace: str) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    train_through(job, (job.edit, 3), (job.edit, 1), steps=300)
    assert reasons(cluster, namespace) & OF_A_LOSS == set()

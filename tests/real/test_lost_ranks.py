"""Ranks killed, pods evicted, nodes lost, with real Elastic Horovod: training goes on, and comes back to full size."""

import os
import time
from collections.abc import Iterator, Sequence
from statistics import median

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from lab.training import log as training
from lab.training.job import TrainingJob, workers
from lab.training.log import Recovery, recovery
from mpijob_elastic import names
from mpijob_elastic.decide import lost_ranks
from tests.real.losses import Loss
from tests.real.nodes import SECOND, schedule_on
from tests.real.pods import until

ROUNDS = int(os.environ.get("LOST_RANKS_ROUNDS", "4"))
SIZE = 3
COMMIT_STEPS = 4
# It never ends by itself.
ENVIRONMENT = {
    "TARGET_STEPS": "1000000",
    "MAX_STEPS": "1000000",
    "STEP_SECONDS": "0.5",
    "COMMIT_STEPS": str(COMMIT_STEPS),
    "HOROVOD_GLOO_TIMEOUT_SECONDS": os.environ.get("LOST_RANKS_GLOO_TIMEOUT", "30"),
}
# Seconds. A worker whose rank nobody had seen before it was lost is only tried again after so long; and a driver that
# tells rank 0 of hosts, while that is on a lost node, tries three times for two minutes.
PATIENCE = lost_ranks.NEVER_TRAINED_AFTER + 600
SEEN_AFTER = lost_ranks.LOOK_SELDOM + lost_ranks.TOGETHER


def incarnations(job: TrainingJob) -> dict[str, int] | None:
    """The numbers of the host names of all workers, by pod; None while not all are in the list."""
    hosts = [line.rpartition(":")[0] for line in job.hosts()]
    return {names.pod_of(host): names.incarnation_of(host) for host in hosts} if len(hosts) == SIZE else None


def all_train(job: TrainingJob) -> bool | None:
    """Tell whether all ranks took part in the last step, and all pods run."""
    steps, pods = job.log().steps, job.pods()
    return (
        bool(steps) and steps[-1].size == SIZE and len(pods) == SIZE + 1 and set(pods.values()) == {"Running"}
    ) or None


def trained_for(job: TrainingJob, host: str, *, seconds: float) -> bool | None:
    """Tell whether its last rank began so long ago."""
    return max(one.time for one in job.log().starts if one.host == host) + seconds < time.time() or None


def lose(job: TrainingJob, loss: Loss, pod: str) -> Recovery:
    """Lose the rank of a worker, and wait until all train again, it under its next name.

    The rank of an evicted worker has time to leave; if a probe sees that it did, the worker keeps its name.
    """
    until("all train", lambda: all_train(job), patience=PATIENCE)
    before = until("all are listed", lambda: incarnations(job), patience=PATIENCE)
    schedule_on(job.cluster, loss.replaced_on)
    if loss is Loss.KILLED:
        until(f"{pod} was looked into", lambda: trained_for(job, pod, seconds=SEEN_AFTER), patience=PATIENCE)
    since = time.time()
    loss.inflict(job.cluster, job.namespace, pod)

    def over() -> Recovery | None:
        return recovery(job.log(), pod, size=SIZE, since=since)

    recovered = until(f"all train again after {pod}: {loss.value}", over, patience=PATIENCE)
    next_names, same = {**before, pod: before[pod] + 1}, [before] if loss is Loss.EVICTED else []
    assert incarnations(job) in [next_names, *same]
    job.cluster.start_node(SECOND)  # unless it is up
    return recovered


def told(recoveries: Sequence[tuple[Loss, Recovery]]) -> Iterator[str]:
    """Yield the measurements, a line each."""
    for loss in Loss:
        them = [one for kind, one in recoveries if kind is loss]
        if them:
            went_on, full = _summary([one.went_on for one in them]), _summary([one.full for one in them])
            yield f"{loss.value}, {len(them)} rounds: went on after {went_on}, full size after {full}"


def _summary(seconds: list[float]) -> str:
    return f"{median(seconds):.1f} s (worst {max(seconds):.1f} s)"


@pytest.mark.timeout(600 + 300 * ROUNDS)
def test_training_outlives_lost_ranks_and_comes_back_to_full_size(
    cluster: Cluster,
    namespace: str,
    two_nodes: None,
    training_image: None,
    operator: Operator,
    elastic: Controller,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    job.create(ENVIRONMENT)
    job.edit(SIZE)
    losses, pods = tuple(Loss), workers(SIZE)
    recoveries: list[tuple[Loss, Recovery]] = []
    for number in range(ROUNDS):
        # Each worker in turn meets each loss.
        loss, pod = losses[number % len(losses)], pods[number % SIZE]
        recoveries.append((loss, lose(job, loss, pod)))
        with capsys.disabled():  # many rounds last long
            print(f"\n{number + 1}, {pod}: {recoveries[-1]}", end="")  # noqa: T201
    with capsys.disabled():
        print("", *told(recoveries), sep="\n")  # noqa: T201

    log = job.log()
    assert log.steps[0].step == 1
    assert training.lost_steps(log.steps) <= COMMIT_STEPS
    assert log.steps[-1].loss < log.steps[0].loss
    assert job.outcome() == "Running"

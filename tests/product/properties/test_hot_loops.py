"""No deletion of ours repeats without a back-off, whatever makes the pod come back.

The controller and the webhook are real; a loop is found by the writes in a simulated time, in which
nobody edits anything.
"""

import logging
from itertools import pairwise
from typing import Any

import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.decide.state import DELETED
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.names import PARKED, SUSPEND
from tests import queued_histories
from tests.loop_histories import MOST_DELETIONS, QUIET, LoopHistory, Loops
from tests.queued_cluster import NAMESPACE, Leader, gated

JOB = "train"


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)


def train(cluster: Loops, **annotations: str) -> None:
    """Store a job of three workers."""
    job = objects.mpi_job(
        name=JOB, uid="job-1", replicas=3, annotations=annotations, conditions=["Created"]
    )
    cluster.put(MPI_JOBS.path(NAMESPACE, JOB), job)


def annotate(cluster: Loops, key: str, value: str | None) -> None:
    """Edit the job while the webhook does not look."""
    job = cluster.get(MPI_JOBS, JOB)
    assert job is not None
    cluster.change(MPI_JOBS, job, metadata={"annotations": {key: value}})


async def passes(cluster: Loops, leader: Leader, *, seconds: float, step: float = 1.0) -> None:
    """Let time pass: operator, kubelets and controller act again and again."""
    until = cluster.now + seconds
    while cluster.now < until:
        cluster.now += step
        cluster.operate()
        cluster.run()
        cluster.serve()
        await leader.look()


async def _foreign(cluster: Loops, leader: Leader) -> None:
    """Another operator makes a pod again as a webhook of an earlier version left it."""
    train(cluster, **{PARKED: "1"})
    await passes(cluster, leader, seconds=10)
    cluster.newer = True
    for pod in cluster.all(PODS):
        cluster.change(PODS, pod, metadata={"labels": {names.LABEL_REPLICA_INDEX: "0"}})
    config = cluster.get(CONFIG_MAPS, names.config_map(JOB))
    assert config is not None
    cluster.change(CONFIG_MAPS, config, metadata={"annotations": {names.MEMORY: None}})


async def _disagree(cluster: Loops, leader: Leader) -> None:
    train(cluster, **{PARKED: "1"})
    await passes(cluster, leader, seconds=10)
    cluster.remember()
    annotate(cluster, PARKED, None)


async def _names_a_node(cluster: Loops, leader: Leader) -> None:
    train(cluster, **{PARKED: "1"})
    await passes(cluster, leader, seconds=10)
    job = cluster.get(MPI_JOBS, JOB)
    assert job is not None
    spec = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    template = {"spec": {**spec, "nodeName": "n"}}
    cluster.change(MPI_JOBS, job, spec={"mpiReplicaSpecs": {"Worker": {"template": template}}})
    cluster.remove(PODS.path(NAMESPACE, names.worker(JOB, 1)))


async def _suspended(cluster: Loops, leader: Leader) -> None:
    train(cluster)
    await passes(cluster, leader, seconds=30)
    cluster.away = True
    annotate(cluster, SUSPEND, "true")


@pytest.mark.parametrize(
    ("begin", "pod"),
    [
        pytest.param(_foreign, names.worker(JOB, 1), id="another operator manages the job"),
        pytest.param(_disagree, names.worker(JOB, 1), id="the webhook knows an old version"),
        pytest.param(_names_a_node, names.worker(JOB, 1), id="the template names a node later"),
        pytest.param(_suspended, names.launcher(JOB), id="suspended while the webhook is away"),
    ],
)
async def test_a_pod_that_comes_back_is_deleted_ever_more_seldom(begin: Any, pod: str) -> None:
    cluster = Loops()
    leader = Leader(cluster)
    await begin(cluster, leader)
    began = cluster.now
    await passes(cluster, leader, seconds=QUIET)
    times = cluster.pods_deleted(since=began).get(pod, [])
    assert times
    assert len(times) <= MOST_DELETIONS
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(pause >= delay for pause, delay in zip(pauses, DELETED.delays[1:], strict=False))


async def test_an_edit_does_not_wait_for_what_was_before() -> None:
    """A user who changes the size again and again waits for nothing."""
    cluster = Loops()
    leader = Leader(cluster)
    train(cluster)
    await passes(cluster, leader, seconds=30)
    for _ in range(4):
        for indices, gates in (("1", True), (None, False)):
            annotate(cluster, PARKED, indices)
            await passes(cluster, leader, seconds=40)
            pod = cluster.get(PODS, names.worker(JOB, 1))
            assert pod is not None
            assert gated(pod) is gates
    assert len(cluster.pods_deleted(since=0.0)[names.worker(JOB, 1)]) == 8


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in (4, 8, 12, 16))]
)
async def test_histories_without_a_hot_loop(first: int) -> None:
    assert await queued_histories.search(range(first, first + 4), kind=LoopHistory) == []

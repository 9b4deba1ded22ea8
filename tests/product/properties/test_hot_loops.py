"""No deletion of ours repeats without a back-off, whatever makes the pod come back.

The controller and the webhook are real; a loop is found by the writes in a simulated time, in which
nobody edits anything.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from lab.operator import objects
from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.parking import PARKED
from mpijob_elastic.capabilities.suspension import SUSPEND
from mpijob_elastic.decide.state import DELETED
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from tests import queued_histories
from tests.doubles.api import Object
from tests.doubles.direct import Sent
from tests.free_histories import FreeHistory
from tests.queued_cluster import NAMESPACE, Cluster, Leader, gated, parked, size_of
from tests.queued_histories import MOST, ROUND, Step

# Seconds of the quiet time, and most deletions of one pod in it by DELETED; the pause grows to 300 s.
QUIET = 600.0
MOST_DELETIONS = 1 + sum(sum(DELETED.delays[:count]) < QUIET for count in range(1, 11))
# The most other writes of the controller for each job in the second half of it.
MOST_WRITES = 30
JOB = "train"


class Loops(Cluster):
    """A cluster whose webhook may be away, or know an old version of the jobs; `newer`: v0.3.0 makes the pods.

    asked: the controller's writes, each with its time.
    """

    away, newer = False, False

    def __init__(self, quota: int = 0) -> None:
        self.asked: list[tuple[float, Sent]] = []
        self.old: dict[str, bytes] = {}
        super().__init__(quota)

    def remember(self) -> None:
        """Let the webhook see the jobs as they are now, and no later version."""
        self.old = {
            job["metadata"]["name"]: self.objects.text(
                MPI_JOBS.path(NAMESPACE, job["metadata"]["name"])
            )
            for job in self.all(MPI_JOBS)
        }

    def pods_deleted(self, *, since: float) -> dict[str, list[float]]:
        """Return the times at which the controller has deleted pods, by pod."""
        found: dict[str, list[float]] = {}
        start = PODS.path(NAMESPACE) + "/"
        for at, sent in self.asked:
            if at > since and sent.method == "DELETE" and sent.path.startswith(start):
                found.setdefault(sent.name, []).append(at)
        return found

    def written(self, *, since: float) -> Counter[tuple[str, str]]:
        """Return how often the controller wrote, by method and object."""
        return Counter((sent.method, sent.path) for at, sent in self.asked if at > since)

    def _before(self, sent: Sent) -> object | None:
        answer = super()._before(sent)  # raises where a pod has changed: the queue has a back-off
        if sent.method != "GET":
            self.asked.append((self.now, sent))
        return answer

    def _admitted(self, resource: Resource, made: Object) -> Object:
        if self.newer and resource is PODS:
            made["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = "0"
        return made if self.away else super()._admitted(resource, made)

    def _facts(self, namespace: str, name: str) -> Any:
        if name in self.old:
            return capabilities.read(self.old[name])
        return super()._facts(namespace, name)


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


class LoopHistory(FreeHistory):
    """Histories in which the webhook is away or old now and then, which are not to end well but to end."""

    KIND = Loops
    KINDS: ClassVar[Sequence[str]] = (
        *("park",) * 8,
        *("old",) * 3,
        *("size", "suspend", "away", "newer", "scale") * 2,
        *("fail", "lose", "relaunch", "queue", "lag", "finish", "template"),
    )
    cluster: Loops

    def _step(self, kind: str, name: str, number: int) -> None:
        if kind == "away":
            self.cluster.away = not self.cluster.away
        elif kind == "newer":
            self.cluster.newer = not self.cluster.newer
        elif kind == "scale":
            self._scale(name, 1 + number % MOST)
        elif kind == "old":
            if self.cluster.old:
                self.cluster.old = {}
            else:
                self.cluster.remember()
        else:
            super()._step(kind, name, number)

    def _scale(self, name: str, size: int) -> None:
        job = self.cluster.get(MPI_JOBS, name)
        if job is None or name in self.cluster.old:
            return
        self.cluster.scale(job, size)
        after = self.cluster.get(MPI_JOBS, name)
        assert after is not None
        if size_of(after) != size_of(job) and len(parked(after)) == size_of(after):
            self.wrong.append(f"a scale of {name} to {size} leaves nobody")

    def _watch(self) -> None:
        """Nothing: without its webhook a job may run past its queue."""

    async def play(self, steps: Sequence[Step]) -> list[str]:
        """Play the steps and a quiet time; return what the controller does too often in it."""
        for kind, job, number in [("pass", 0, 0), *steps]:
            self._step(kind, f"j{job}", number)
            for _ in range(1 + number % 3):
                await self._round()
        self.cluster.lagging, self.cluster.crash_in = None, 0
        began = self.cluster.now
        for _ in range(int(QUIET / ROUND)):
            await self._round()
        for pod, times in self.cluster.pods_deleted(since=began).items():
            if len(times) > MOST_DELETIONS:
                self.wrong.append(f"{pod} was deleted {len(times)} times in {QUIET:.0f} s")
        written = self.cluster.written(since=began + QUIET / 2)
        if written.total() > MOST_WRITES * self.jobs:
            self.wrong.append(f"{written.total()} writes: {written.most_common(3)}")
        return self.wrong


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in (4, 8, 12, 16))]
)
async def test_histories_without_a_hot_loop(first: int) -> None:
    assert await queued_histories.search(range(first, first + 4), kind=LoopHistory) == []

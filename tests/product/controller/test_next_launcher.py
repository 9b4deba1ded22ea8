"""An edit to a plain command is for the next launcher: until that starts, the job stays as it is.

Controller and webhook are real; operator, kubelets and driver are doubles.
"""

from collections.abc import Iterable

import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.names import PARKED, SIZES, SUSPEND
from tests.doubles.api import Object
from tests.queued_cluster import NAMESPACE, Cluster, Leader, gated, holds_place, pods_of, running

JOB = "train"
LAUNCHER = names.launcher(JOB)


def workers(*indices: int) -> set[str]:
    return {names.worker(JOB, index) for index in indices}


class Place:
    """A job of four workers, in a cluster that acts on request."""

    def __init__(self, **annotations: str) -> None:
        self.cluster = Cluster(quota=0)
        self.leader = Leader(self.cluster)
        job = objects.mpi_job(
            name=JOB, uid="job-1", replicas=4, annotations=annotations, conditions=["Created"]
        )
        self.cluster.put(MPI_JOBS.path(NAMESPACE, JOB), job)

    async def passes(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.cluster.now += 1.0
            self.cluster.operate()
            self.cluster.run()
            self.cluster.serve()
            await self.leader.look()

    def edit(self, **patch: object) -> None:
        """Edit the job as a user does."""
        before = self.cluster.get(MPI_JOBS, JOB)
        assert before is not None
        self.cluster.edit(before, **patch)

    def make_plain(self) -> None:
        job = self.cluster.get(MPI_JOBS, JOB)
        assert job is not None
        spec = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        first = {**spec["containers"][0], "command": [*objects.PLAIN]}
        template = {"spec": {**spec, "containers": [first]}}
        self.edit(spec={"mpiReplicaSpecs": {"Launcher": {"template": template}}})
        edited = self.cluster.get(MPI_JOBS, JOB)
        assert edited is not None
        assert edited["spec"] != job["spec"]

    def lose(self, pod: str) -> None:
        self.cluster.remove(PODS.path(NAMESPACE, pod))

    @property
    def listed(self) -> set[str]:
        return self.cluster.listed(JOB)

    def pods(self) -> Iterable[Object]:
        return pods_of(self.cluster, JOB)

    @property
    def placeholders(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.pods() if holds_place(pod)}

    @property
    def running(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.pods() if running(pod)}

    @property
    def notices(self) -> str:
        job = self.cluster.get(MPI_JOBS, JOB)
        assert job is not None
        told: str = job["metadata"]["annotations"].get(names.STATUS, "")
        return told


async def test_parked_workers_stay_parked() -> None:
    place = Place(**{PARKED: "1"})
    await place.passes(30)
    assert place.listed == workers(0, 2, 3)
    place.make_plain()
    await place.passes(60)
    assert place.listed == workers(0, 2, 3)
    assert place.placeholders == workers(1)
    assert place.notices.count(f"{names.REASON_STILL_ELASTIC}: ") == 1

    # The webhook knows it, too: it sees the MPIJob alone.
    place.lose(names.worker(JOB, 1))
    await place.passes(10)
    assert place.placeholders == workers(1)
    assert place.listed == workers(0, 2, 3)


async def test_they_come_back_with_the_next_launcher() -> None:
    place = Place(**{PARKED: "1"})
    await place.passes(30)
    place.make_plain()
    await place.passes(10)
    place.lose(LAUNCHER)
    await place.passes(60)
    assert place.placeholders == set()
    assert place.running == {LAUNCHER, *workers(0, 1, 2, 3)}
    assert names.REASON_STILL_ELASTIC not in place.notices


@pytest.mark.parametrize("lost", [(), (LAUNCHER,), (LAUNCHER, *workers(0, 1))])
async def test_a_suspended_job_stays_suspended(lost: tuple[str, ...]) -> None:
    """Also while its launcher, and workers, are made anew from the plain template."""
    place = Place(**{names.DRAIN_TIMEOUT: "5s"})
    await place.passes(30)
    place.edit(metadata={"annotations": {SUSPEND: "true"}})
    await place.passes(60)
    assert all(gated(pod) for pod in place.pods())
    place.make_plain()
    for pod in lost:
        place.lose(pod)
    await place.passes(60)
    assert all(gated(pod) for pod in place.pods())
    assert place.running == set()
    place.edit(metadata={"annotations": {SUSPEND: None}})
    await place.passes(60)
    assert place.running == {LAUNCHER, *workers(0, 1, 2, 3)}


async def test_it_can_be_suspended_once_more() -> None:
    place = Place(**{names.DRAIN_TIMEOUT: "5s"})
    await place.passes(30)
    place.make_plain()
    await place.passes(10)
    place.edit(metadata={"annotations": {SUSPEND: "true"}})
    await place.passes(60)
    assert place.running == set()
    assert all(gated(pod) for pod in place.pods())
    place.edit(metadata={"annotations": {SUSPEND: None}})
    await place.passes(60)
    assert place.running == {LAUNCHER, *workers(0, 1, 2, 3)}
    assert names.REASON_STILL_ELASTIC not in place.notices


async def test_sizes_hold() -> None:
    place = Place(**{SIZES: "2,4"})
    await place.passes(30)
    place.make_plain()
    await place.passes(10)
    three = {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}
    place.edit(spec=three)  # the webhook refuses it
    job = place.cluster.get(MPI_JOBS, JOB)
    assert job is not None
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 4
    place.cluster.change(MPI_JOBS, job, spec=three)
    await place.passes(60)
    assert place.listed == workers(0, 1)


async def test_enabled_false_holds_at_once() -> None:
    place = Place(**{PARKED: "1"})
    await place.passes(30)
    place.edit(metadata={"annotations": {names.ENABLED: "false"}})
    await place.passes(30)
    assert place.placeholders == set()
    assert names.REASON_STILL_ELASTIC not in place.notices


async def test_an_edit_back_takes_the_notice_away() -> None:
    place = Place()
    await place.passes(30)
    place.make_plain()
    await place.passes(10)
    assert names.REASON_STILL_ELASTIC in place.notices
    place.edit(metadata={"annotations": {names.ENABLED: "true"}})
    await place.passes(10)
    assert place.notices == ""

"""elastic.sh with the mpirun of three MPIs when workers go, are lost, and when the job is suspended.

What is announced loses no step: a taint of a spot node, a deleted worker, an eviction, a
suspension. After a killed rank and a lost node the program goes on from what was saved last.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.registration import evictions_wait
from lab.training.mpi.job import MPIS, Mpi
from mpijob_elastic import names
from tests.real.losses import Loss
from tests.real.mpi import SAVE_EVERY, MpiTraining, Way
from tests.real.nodes import FIRST, SECOND, schedule_on
from tests.real.pods import until

pytestmark = pytest.mark.usefixtures("mpi_image", "operator", "elastic", "two_nodes")

SPOT = "aws-node-termination-handler/spot-itn"


@pytest.fixture(params=MPIS, ids=lambda made: made.name)
def training(
    request: pytest.FixtureRequest, cluster: Cluster, namespace: str, tmp_path: Path
) -> Iterator[MpiTraining]:
    """A job of three workers, the last of them on the second node."""
    until("evictions wait for the drain", lambda: evictions_wait(cluster) or None)
    made: Mpi = request.param
    with MpiTraining.begun(made, cluster, namespace, tmp_path, size=2) as training:
        schedule_on(cluster, SECOND)
        training.resized(2, 3, hand=None)
        schedule_on(cluster, FIRST)
        yield training


@pytest.mark.timeout(900)
def test_a_job_goes_on_through_all_that_ends_workers(
    training: MpiTraining, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(way: Way) -> None:
        with capsys.disabled():
            print(f"\n{training.made.words}, {way.words}", end="")  # noqa: T201

    last = names.worker(training.job.name, 2)

    def taint() -> None:
        cluster.kubectl("taint", "node", SECOND, f"{SPOT}=:NoSchedule")

    announced = [training.through("spot taint", last, taint, size=3)]
    show(announced[-1])
    cluster.kubectl("taint", "node", SECOND, f"{SPOT}-")

    def delete() -> None:
        cluster.kubectl("-n", training.job.namespace, "delete", "pod", last, "--wait=false")

    announced.append(training.through("worker deleted", last, delete, size=3))
    show(announced[-1])

    def evict() -> None:
        Loss.EVICTED.inflict(cluster, training.job.namespace, last)

    schedule_on(cluster, SECOND)
    announced.append(training.through("worker evicted", last, evict, size=3))
    show(announced[-1])
    schedule_on(cluster, FIRST)

    def suspend() -> None:
        training.suspended()

    announced.append(training.through("suspended and resumed", last, suspend, size=3))
    show(announced[-1])
    assert [way.lost for way in announced] == [0] * len(announced)
    assert {code for way in announced for code in way.codes} == {0}
    training.finished()


@pytest.mark.timeout(900)
def test_a_job_comes_back_from_a_killed_rank_and_a_lost_node(
    training: MpiTraining, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(way: Way) -> None:
        with capsys.disabled():
            print(f"\n{training.made.words}, {way.words}", end="")  # noqa: T201

    killed, last = (names.worker(training.job.name, index) for index in (1, 2))

    def kill() -> None:
        Loss.KILLED.inflict(cluster, training.job.namespace, killed)

    ways = [training.through("rank killed", None, kill, size=3)]
    show(ways[-1])

    def lose() -> None:
        Loss.NODE_LOST.inflict(cluster, training.job.namespace, last)

    ways.append(training.through("node lost", last, lose, size=3))
    show(ways[-1])
    assert all(way.lost <= SAVE_EVERY for way in ways)
    training.finished()

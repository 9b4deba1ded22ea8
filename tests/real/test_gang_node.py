"""A gang of real Elastic Horovod from which a job of higher priority takes workers: their ranks leave in time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob, workers
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import recorded
from tests.lab.job import Job
from tests.peers import coscheduling
from tests.peers.gpus import priority
from tests.real.two_jobs import NOTHING, Shared, gpus, on_gpus, share

pytestmark = pytest.mark.usefixtures("own_node", "training_image")

VOLCANO = {"mpijob-elastic/gang": "volcano", "scheduling.volcano.sh/queue-name": "team"}
COSCHEDULING = {"mpijob-elastic/gang": "coscheduling"}


@dataclass(frozen=True, kw_only=True)
class Preempted:
    """What became of the first job, and which of its workers were deleted."""

    shared: Shared
    taken: set[str]


@dataclass(frozen=True, kw_only=True)
class Two:
    """The two jobs of a test; the second has a class of high priority."""

    client: ApiWriter
    first: TrainingJob
    second: TrainingJob
    capsys: pytest.CaptureFixture[str]

    async def preempt(self, annotations: Mapping[str, str], specs: Mapping[str, str] = NOTHING) -> Preempted:
        """Have the second job take two of the first one's four workers, and end.

        specs: what all pods have in theirs.
        """
        first, second = self.first, self.second
        with gpus(first.cluster, 4):
            async with (
                priority(self.client, first.namespace, takes=True) as high,
                recorded(self.client, first.namespace, job=first.name) as history,
            ):
                large = on_gpus(4, annotations=annotations, specs=specs)
                urgent = on_gpus(2, annotations=annotations, specs={**specs, **high})
                shared = await asyncio.to_thread(share, first, large, second, urgent)
        taken = {*history.deleted()}
        with self.capsys.disabled():
            print(f"\n{shared.told(first.name, second.name)}; taken: {sorted(taken)}")  # noqa: T201

        assert training.harm(first.log()) == []
        assert training.problems(second.log()) == []
        told = await Job(client=self.client, namespace=first.namespace, name=first.name).events()
        assert any(reason == "Disruption" and "DisruptionTarget" in message for reason, message in told)
        assert "HostsLost" not in {reason for reason, _ in told}
        return Preempted(taken=taken, shared=shared)


@pytest.fixture
def two(cluster: Cluster, namespace: str, client: ApiWriter, capsys: pytest.CaptureFixture[str]) -> Two:
    # Not `train`: tests on the same machine at the same time look for ranks by the host.
    first, second = (TrainingJob(cluster=cluster, namespace=namespace, name=name) for name in ("grower", "rival"))
    return Two(client=client, first=first, second=second, capsys=capsys)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("volcano", "elastic", "operator")
async def test_volcano_takes_only_workers_above_the_least_size_and_no_rank_is_killed(two: Two) -> None:
    done = await two.preempt(VOLCANO)
    least = workers(2, job=two.first.name)
    assert done.taken == {*workers(4, job=two.first.name)} - {*least}
    assert done.shared.kept == least
    assert done.shared.listed == tuple(f"{name}:1" for name in least)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("coscheduler", "elastic", "operator")
async def test_of_the_workers_that_coscheduling_takes_no_rank_is_killed(two: Two) -> None:
    """kube-scheduler chooses them; no mark of a pod protects it, nor does its index."""
    done = await two.preempt(COSCHEDULING, {"schedulerName": coscheduling.NAME})
    assert {*workers(4, job=two.first.name)} - {*done.shared.kept} <= done.taken

"""Two jobs in a queue of Kueue, with real Elastic Horovod: one gives quota back to the other, and no rank is killed."""

import asyncio
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob, workers
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job
from tests.real.two_jobs import GPU, Object, gpus, on_gpus, share

pytestmark = pytest.mark.usefixtures("own_node", "kueue_serves", "elastic", "operator", "training_image")

ROOM = 8  # of the node: more than the quota of four, so that Kueue alone decides


@pytest.fixture
def room(cluster: Cluster) -> Iterator[None]:
    """The node has more GPUs than the queue."""
    with gpus(cluster, ROOM):
        yield


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("room")
async def test_a_job_gives_quota_back_to_a_job_that_waits_and_no_rank_is_killed(
    cluster: Cluster, namespace: str, client: ApiWriter, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def queued() -> Object:
        return on_gpus(4, labels={names.LABEL_QUEUE: queue})

    # Not `train`: tests on the same machine at the same time look for ranks by the host.
    first, second = (TrainingJob(cluster=cluster, namespace=namespace, name=name) for name in ("grower", "rival"))
    async with (
        recorded(client, namespace, job=first.name) as mine,
        recorded(client, namespace, job=second.name) as theirs,
    ):
        shared = await asyncio.to_thread(share, first, queued(), second, queued())
    with capsys.disabled():
        print(f"\n{shared.told(first.name, second.name)}")  # noqa: T201

    assert shared.kept == workers(2, job=first.name)
    assert shared.listed == tuple(f"{name}:1" for name in shared.kept)
    assert most_requested(GPU, mine, theirs) == 4
    assert mine.deleted_while_published() == []
    assert training.harm(first.log()) == []
    assert training.problems(second.log()) == []
    told = await Job(client=client, namespace=namespace, name=first.name).events()
    drained = {message.partition(" after")[0] for reason, message in told if reason == "SurplusDeleted"}
    assert drained == {f"{name} is being deleted: drained" for name in workers(4, job=first.name)[2:]}
    assert not {"HostsLost", "DrainTimeout"} & {reason for reason, _ in told}

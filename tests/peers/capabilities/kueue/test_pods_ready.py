"""Kueue evicts a job whose pods are not ready in time; it does so by default, after half an hour.

Here it waits for seconds.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from tests.lab.job import HOLD, Job, Object, State
from tests.lab.on_demand import OnDemand
from tests.lab.suspended import pods
from tests.peers.kueue import Kueue
from tests.peers.queued_jobs import ONE_GPU, QUICK, ends_quietly
from tests.peers.queues import flavor_and_class

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("impatient", "elastic", "operator"),
]


@pytest.fixture(scope="module")
def impatient(
    cluster: Cluster, kueue: Kueue, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Kueue, which waits ten seconds for pods, and a second before it tries again."""
    programs.keep(())  # they look for its definitions when they start
    waits = {"timeout": "10s", "requeuingStrategy": {"backoffBaseSeconds": 1}}
    with kueue.serving(
        cluster, tmp_path_factory.mktemp("kueue"), configuration={"waitForPodsReady": waits}
    ):
        flavor_and_class(cluster)
        yield
        programs.keep(())


def uids(state: State) -> set[str]:
    """Return the uids of the job's pods that are not on their way out."""
    return {pod["metadata"]["uid"] for pod in pods(state)}


async def test_a_job_on_slow_nodes_is_stopped_each_time_and_runs_once_they_are_ready(
    job: Job, queue: str
) -> None:
    """After the first time Kueue waited for ever, and the job kept quota that it did not use."""
    await job.create(
        replicas=3,
        worker_spec=ONE_GPU,
        worker_annotations={HOLD: "yes"},
        annotations=QUICK,
        job_labels={LABEL_QUEUE: queue},
    )
    stopped = partial(job.told, "LauncherSuspended", "by Kueue (Exceeded the PodsReady timeout")
    first = uids(await job.until(lambda state: len(pods(state)) == 4, "the first pods"))
    await stopped()
    await job.until(lambda state: len(uids(state) - first) == 4, "the next")
    # Those are as slow, and their successors are not.
    ready: Object = {"template": {"metadata": {"annotations": {HOLD: None}}}}
    await job.patch({"spec": {"mpiReplicaSpecs": {"Worker": ready}}})
    await stopped(times=2)
    await job.settled(3)
    await ends_quietly(job)

"""Gangs of Kubernetes 1.36, whose PodGroups (v1alpha2) cannot change."""

from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from lab.install import Installed, install_into
from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS_OF_1_36 as POD_GROUPS
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.job import Job
from tests.lab.on_demand import OnDemand
from tests.peers.gpus import on_gpu, priority, replaced
from tests.peers.kubernetes_gangs import GANG, lab_of, min_count, pod_group, uids

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("elastic", "operator")]

VERSION = "v1.36.3"


@pytest.fixture(scope="module")
def cluster(programs: OnDemand) -> Iterator[Cluster]:
    """A lab of that version, in place of the session's."""
    with lab_of(VERSION, programs) as running:
        yield running


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Installed:
    """Our objects there."""
    return install_into(cluster)


async def test_below_its_start_a_worker_is_replaced_once_the_user_deletes_the_pod_group(
    job: Job, pool: str
) -> None:
    """Its launcher may have a priority of its own."""
    async with priority(job.client, pool, takes=False) as high:
        await job.create(
            replicas=4, annotations=GANG, worker_spec=on_gpu(pool), launcher_spec={**high}
        )
        await job.settled(4)
        assert min_count(await pod_group(job, POD_GROUPS)) == 5
        await job.scale(2)
        await job.until(lambda state: len(state.workers) == len(state.hosts) == 2, "two workers")
        await job.told("GangUnchanged", "waits for 5 pods")
        path = POD_GROUPS.path(job.namespace, job.name)
        await job.client.delete_object(path)
        await job.client.patch_object(
            path, body={"metadata": {"finalizers": None}}, content_type=MERGE_PATCH
        )
        await job.told("PodGroupCreated", "3 at least")
        assert uids(await job.state()).keys() == {*job.workers(0, 1)}
        await replaced(job, job.workers(1)[0])

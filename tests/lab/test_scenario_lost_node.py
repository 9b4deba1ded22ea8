"""A Node is deleted: we delete its workers, instead of the garbage collector of pods, and they come back elsewhere."""

import re
import secrets
from collections.abc import AsyncIterator

import pytest

from lab.cluster import Cluster
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import HOROVODRUN, Job, Object
from tests.lab.pools import make_nodes, on_pool, remove_nodes

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator")]
FULL = {"key": "full", "effect": "NoSchedule"}
LOST = re.compile(r'^mpijob_elastic_deleted_workers_total\{outcome="lost"\} ([0-9.]+)', re.MULTILINE)


@pytest.fixture
def job(client: ApiWriter, namespace: str) -> Job:
    return Job(client=client, namespace=namespace)


@pytest.fixture
async def nodes(cluster: Cluster, client: ApiWriter) -> AsyncIterator[tuple[str, str]]:
    """Two nodes of their own; the name without its number is the value of their label."""
    pool = f"pool-{secrets.token_hex(4)}"
    await make_nodes(client, pool)
    yield f"{pool}-0", f"{pool}-1"
    await remove_nodes(client, pool)


async def patch(client: ApiWriter, path: str, body: Object) -> None:
    await client.patch_object(path, body=body, content_type=MERGE_PATCH)


async def schedule_on(client: ApiWriter, node: str, *others: str) -> None:
    for name in (node, *others):
        taints = [FULL] if name in others else []
        await patch(client, resources.NODES.path(None, name), {"spec": {"taints": taints}})


def lost(controller: Controller) -> float:
    """Return how many workers the controller has deleted because their nodes were gone."""
    found = LOST.search(controller.metrics())
    assert found
    return float(found[1])


async def test_a_worker_whose_node_is_gone_comes_back_elsewhere(
    client: ApiWriter, job: Job, nodes: tuple[str, str], elastic: Controller
) -> None:
    assert elastic.ready()
    stays, goes = nodes
    await schedule_on(client, stays, goes)
    await job.create(replicas=2, worker_spec=on_pool(stays.rpartition("-")[0]))
    await job.settled(2)
    # Younger than the driver, so it cannot have rank 0, which others would have to get over.
    await schedule_on(client, goes, stays)
    await job.scale(3)
    before, [pod] = await job.settled(3), job.workers(2)
    assert before.workers[pod]["spec"]["nodeName"] == goes
    await schedule_on(client, stays, goes)
    await client.delete_object(resources.NODES.path(None, goes))
    await job.told("HostsLost", f"{pod} removed from discover_hosts.sh: node {goes} is gone")
    await job.told("WorkerReplaced", f"{pod} is being deleted: its node {goes} is gone; the operator recreates it")
    await job.until(lambda state: f"{names.host(pod, 1)}:1" in state.hosts, f"{pod} under another name")
    after = await job.settled(3)
    assert after.workers[pod]["spec"]["nodeName"] == stays


@pytest.mark.thorough
async def test_a_finalizer_keeps_a_pod_whose_node_is_gone_and_nobody_deletes_it_twice(
    client: ApiWriter, job: Job, nodes: tuple[str, str], elastic: Controller
) -> None:
    stays, goes = nodes
    await schedule_on(client, goes, stays)
    command = ["horovodrun", "--gloo-timeout-seconds", "1", *HOROVODRUN[1:]]
    await job.create(replicas=1, command=command, worker_spec=on_pool(stays.rpartition("-")[0]))
    await job.settled(1)
    await schedule_on(client, stays, goes)
    await job.scale(2)
    before, [pod] = await job.settled(2), job.workers(0)
    assert before.workers[pod]["spec"]["nodeName"] == goes
    path = resources.PODS.path(job.namespace, pod)
    await patch(client, path, {"metadata": {"finalizers": ["lab.mpijob-elastic/keep"]}})
    deleted = lost(elastic)
    await client.delete_object(resources.NODES.path(None, goes))
    await job.told("WorkerReplaced", f"{pod} is being deleted: its node {goes} is gone")
    held = (await job.at_rest()).workers[pod]["metadata"]
    assert held["uid"] == before.workers[pod]["metadata"]["uid"]
    assert held["deletionGracePeriodSeconds"] == 0, "no kubelet has to confirm it"
    assert lost(elastic) == deleted + 1
    await patch(client, path, {"metadata": {"finalizers": None}})
    after = await job.settled(2)
    assert after.hosts[0] == f"{names.host(pod, 1)}:1"

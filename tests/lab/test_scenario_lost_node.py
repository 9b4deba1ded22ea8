"""A Node is deleted: we delete its workers, instead of the garbage collector of pods, and they come back elsewhere."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.known_signs import signs
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.nodes import Nodes
from tests.faults.faults import Freeze, watches
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.lab.job import HOROVODRUN, Job, Object
from tests.lab.pools import make_nodes, on_pool, remove_nodes

pytestmark = pytest.mark.lab
FULL = {"key": "full", "effect": "NoSchedule"}


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


@pytest.mark.usefixtures("operator")
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
    await job.told(
        "WorkerReplaced",
        f"{pod} is being deleted: its node {goes} is gone; the operator recreates it",
    )
    await job.until(
        lambda state: f"{names.host(pod, 1)}:1" in state.hosts, f"{pod} under another name"
    )
    after = await job.settled(3)
    assert after.workers[pod]["spec"]["nodeName"] == stays


@pytest.mark.thorough
@pytest.mark.usefixtures("operator")
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
    await client.delete_object(resources.NODES.path(None, goes))
    await job.told("WorkerReplaced", f"{pod} is being deleted: its node {goes} is gone")
    held = (await job.at_rest()).workers[pod]["metadata"]
    assert held["uid"] == before.workers[pod]["metadata"]["uid"]
    assert held["deletionGracePeriodSeconds"] == 0, "no kubelet has to confirm it"
    replaced = [text for reason, text in await job.events() if reason == "WorkerReplaced"]
    assert len(replaced) == 1
    await patch(client, path, {"metadata": {"finalizers": None}})
    after = await job.settled(2)
    assert after.hosts[0] == f"{names.host(pod, 1)}:1"


def gone(nodes: Nodes, name: str) -> bool:
    pod = facts_pod.read(b'{"metadata": {"name": "p"}, "spec": {"nodeName": "%s"}}' % name.encode())
    return nodes.judge([pod])[0].node_gone_at > 0.0


async def test_a_node_is_gone_once_seen_deleted_and_read_live(
    client: ApiWriter, installed: Installed
) -> None:
    """With the rights of the controller; a node that joins while the watch hangs is not gone, nor one that is back."""
    old, new = (f"node-{secrets.token_hex(4)}" for _ in range(2))
    await create(client, old)
    async with (
        FaultProxy(installed.controller_kubeconfig) as proxy,
        await connect(user_agent="mpijob-elastic-test", kubeconfig=proxy.kubeconfig) as ours,
    ):
        nodes = Nodes(
            ours, signs=signs(), on_change=lambda _: None, random=Random(1), now=time.time
        )
        task = asyncio.create_task(nodes.run())
        await nodes.synced()
        assert nodes.age() is not None
        assert not gone(nodes, old)
        await delete(client, old)
        await eventually(lambda: gone(nodes, old))
        assert await nodes.is_gone(old)
        with proxy.inject(Freeze(), on=watches):
            await create(client, new)
            await create(client, old)
            assert not gone(nodes, new)
            assert gone(nodes, old), "the watch hangs"
            assert not await nodes.is_gone(old)
            assert not gone(nodes, old)
            for name in (old, new):
                await delete(client, name)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def create(client: ApiWriter, node: str) -> None:
    await client.create_object(NODES.path(), body={"metadata": {"name": node}})


async def delete(client: ApiWriter, node: str) -> None:
    await client.delete_object(NODES.path(None, node))

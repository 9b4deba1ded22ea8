"""Drains and nodes by what this process has seen itself: a clock may be wrong, and a watch may hang."""

import asyncio
import secrets
import time
from contextlib import suppress
from random import Random

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.disruption_signs import signs
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.nodes import Nodes
from tests.faults.faults import Freeze, watches
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.lab.controllers import controlling, leading
from tests.lab.job import Job
from tests.lab.ranks import start_rank

pytestmark = pytest.mark.lab

TIMEOUT = 4.0


@pytest.mark.usefixtures("webhook", "operator")
@pytest.mark.thorough
async def test_a_new_leader_whose_clock_is_ahead_cuts_no_drain(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": f"{TIMEOUT:.0f}s"})
    async with leading(cluster.kubeconfig, namespace):
        await job.settled(2)
        await asyncio.to_thread(start_rank, cluster, job, job.workers(1)[0])
        await job.scale(1)
        await job.until(lambda state: len(state.hosts) == 1, "worker-1 drains")
    left = time.monotonic()
    async with leading(cluster.kubeconfig, namespace, now=lambda: time.time() + 3600.0):
        await job.settled(1)
        assert time.monotonic() - left >= TIMEOUT
        await job.told("DrainTimeout")


@pytest.mark.thorough
@pytest.mark.usefixtures("webhook", "operator")
async def test_a_clock_that_steps_forward_hurries_no_change_after_another(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    """A removal and an addition in one ring forming may deadlock Horovod."""
    job, ahead = Job(client=client, namespace=namespace), 0.0
    await job.create(replicas=2)
    async with controlling(cluster.kubeconfig, namespace, now=lambda: time.time() + ahead):
        before = await job.settled(2)
        began = time.monotonic()
        await job.scale(1)
        await job.until(lambda state: state.refreshed != before.refreshed, "its launcher touched for one worker")
        ahead = 3600.0
        await job.scale(2)
        await job.until(lambda state: len(state.hosts) == 2, "its worker back in the list")
        assert time.monotonic() - began >= SETTLE


def gone(nodes: Nodes, name: str) -> bool:
    pod = facts_pod.read(b'{"metadata": {"name": "p"}, "spec": {"nodeName": "%s"}}' % name.encode())
    return nodes.judge([pod])[0].node_gone_at > 0.0


async def test_a_node_is_gone_once_seen_deleted_and_read_live(client: ApiWriter, installed: Installed) -> None:
    """With the rights of the controller; a node that joins while the watch hangs is not gone, nor one that is back."""
    old, new = (f"node-{secrets.token_hex(4)}" for _ in range(2))
    await create(client, old)
    async with (
        FaultProxy(installed.controller_kubeconfig) as proxy,
        await connect(user_agent="mpijob-elastic-test", kubeconfig=proxy.kubeconfig) as ours,
    ):
        nodes = Nodes(ours, signs=signs(), on_change=lambda _: None, random=Random(1), now=time.time)
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

"""A label and a False condition of a real node make its workers leave, with the rights that are installed."""

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
from mpijob_elastic.capabilities.disruption.known_signs import signs
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiWriter
from mpijob_elastic.model.json_parts import timestamp
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.nodes import Nodes
from tests.faults.waiting import eventually
from tests.lab.job import Job, Object
from tests.lab.pools import make_nodes, on_pool, remove_nodes

pytestmark = pytest.mark.lab
STATE = "dgxc.nvidia.com/nvsentinel-state"
# A quarantined node is cordoned, so no worker comes back to it.
QUARANTINED = {"metadata": {"labels": {STATE: "quarantined"}}, "spec": {"unschedulable": True}}
FREE = {"metadata": {"labels": {STATE: None}}, "spec": {"unschedulable": False}}


@pytest.fixture
async def nodes(cluster: Cluster, client: ApiWriter) -> AsyncIterator[tuple[str, str]]:
    """Two nodes of their own; the name without its number is the value of their label."""
    pool = f"pool-{secrets.token_hex(4)}"
    await make_nodes(client, pool)
    yield f"{pool}-0", f"{pool}-1"
    await remove_nodes(client, pool)


async def patch(client: ApiWriter, node: str, body: Object) -> None:
    await client.patch_object(NODES.path(None, node), body=body, content_type=MERGE_PATCH)


async def report(client: ApiWriter, node: str, *, ago: float) -> None:
    """Report a fault as a monitor does that has seen it for so many seconds."""
    condition = {
        "type": "KernelReady",
        "status": "False",
        "reason": "SoftLockup",
        "lastTransitionTime": timestamp(time.time() - ago),
    }
    await client.patch_object(
        NODES.path(None, node, "status"),
        body={"status": {"conditions": [condition]}},
        content_type=STRATEGIC_MERGE_PATCH,
    )


def threat(nodes: Nodes, name: str) -> tuple[str, bool]:
    """Why a pod on that node is about to go, and whether that counts now."""
    pod = facts_pod.read(b'{"metadata": {"name": "p"}, "spec": {"nodeName": "%s"}}' % name.encode())
    [judged] = nodes.judge([pod])
    return judged.disruption, bool(judged.going(now=time.time()))


async def test_labels_and_conditions_of_nodes_are_seen_with_the_rights_that_are_installed(
    client: ApiWriter, installed: Installed
) -> None:
    name, by_condition = f"node-{secrets.token_hex(4)}", "condition KernelReady=False"
    await client.create_object(NODES.path(), body={"metadata": {"name": name}})
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=installed.controller_kubeconfig
    ) as ours:
        nodes = Nodes(
            ours, signs=signs(), on_change=lambda _: None, random=Random(1), now=time.time
        )
        task = asyncio.create_task(nodes.run())
        await nodes.synced()
        assert threat(nodes, name) == ("", False)
        await patch(client, name, QUARANTINED)
        await eventually(lambda: threat(nodes, name) == (f"label {STATE}=quarantined", True))
        await patch(client, name, FREE)
        await eventually(lambda: threat(nodes, name) == ("", False))
        await report(client, name, ago=60)
        await eventually(lambda: threat(nodes, name) == (by_condition, False))
        await report(client, name, ago=1801)
        await eventually(lambda: threat(nodes, name) == (by_condition, True))
        await client.delete_object(NODES.path(None, name))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.thorough
@pytest.mark.usefixtures("operator")
async def test_workers_leave_a_node_by_its_label_and_by_a_condition_that_is_false_for_long(
    client: ApiWriter, namespace: str, nodes: tuple[str, str], elastic: Controller
) -> None:
    assert elastic.ready()
    stays, goes = nodes
    job = Job(client=client, namespace=namespace)
    await patch(client, goes, {"spec": {"unschedulable": True}})
    await job.create(replicas=2, worker_spec=on_pool(stays.rpartition("-")[0]))
    await job.settled(2)
    for sign, size in (("label", 3), ("condition", 4)):
        await patch(client, goes, FREE)
        await patch(client, stays, {"spec": {"unschedulable": True}})
        await job.scale(size)
        before, [pod] = await job.settled(size), job.workers(size - 1)
        assert before.workers[pod]["spec"]["nodeName"] == goes
        await patch(client, stays, FREE)
        if sign == "label":
            await patch(client, goes, QUARANTINED)
            words = f"label {STATE}=quarantined"
        else:
            await patch(client, goes, {"spec": {"unschedulable": True}})
            await report(client, goes, ago=60)
            assert (await job.at_rest()).workers[pod]["spec"]["nodeName"] == goes
            await report(client, goes, ago=1801)
            words = "condition KernelReady=False"
        await job.told("Disruption", f"{pod} ({words} on node {goes}) removed from")
        after = await job.settled(size)
        assert after.workers[pod]["spec"]["nodeName"] == stays

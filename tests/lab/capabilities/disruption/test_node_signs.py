"""A label and a False condition of a real node make its workers leave, with the rights that are installed."""

import secrets
import time
from collections.abc import AsyncIterator

import pytest

from lab.cluster import Cluster
from lab.replicas import Controller
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiWriter
from mpijob_elastic.model.json_parts import timestamp
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

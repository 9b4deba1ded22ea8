"""A node on which two workers failed: the next worker goes elsewhere, and there all the same if nothing else has room."""

import secrets
from collections.abc import AsyncIterator

import pytest

from lab.replicas import Controller
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job, Object, State
from tests.lab.pools import POOL, make_nodes, remove_nodes

pytestmark = pytest.mark.lab
FAILED = {"phase": "Failed", "reason": "Error"}
# A term of the user's, and a required term, which stay as they are.
MINE: Object = {
    "weight": 10,
    "preference": {"matchExpressions": [{"key": "none", "operator": "Exists"}]},
}


def required(pool: str) -> Object:
    in_pool = {"key": POOL, "operator": "In", "values": [pool]}
    return {"nodeSelectorTerms": [{"matchExpressions": [in_pool]}]}


@pytest.fixture
async def pool(client: ApiWriter) -> AsyncIterator[str]:
    """Two nodes of their own, by the value of their label."""
    name = f"pool-{secrets.token_hex(4)}"
    await make_nodes(client, name)
    yield name
    await remove_nodes(client, name)


async def cordon(client: ApiWriter, node: str, *, is_on: bool) -> None:
    body = {"spec": {"unschedulable": is_on}}
    await client.patch_object(NODES.path(None, node), body=body, content_type=MERGE_PATCH)


def place(state: State, pod: str) -> tuple[str, Object]:
    """The node of a worker, and what the worker asks of nodes."""
    spec = state.workers[pod]["spec"]
    return spec["nodeName"], spec["affinity"]["nodeAffinity"]


@pytest.mark.usefixtures("operator")
async def test_new_workers_prefer_other_nodes_than_one_that_has_lost_two(
    client: ApiWriter, namespace: str, pool: str, elastic: Controller
) -> None:
    assert elastic.ready()
    faulty, other = f"{pool}-0", f"{pool}-1"
    mine: Object = {
        "requiredDuringSchedulingIgnoredDuringExecution": required(pool),
        "preferredDuringSchedulingIgnoredDuringExecution": [MINE],
    }
    others = {
        "weight": 9,
        "preference": {
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [faulty]}]
        },
    }
    avoiding = mine | {"preferredDuringSchedulingIgnoredDuringExecution": [MINE, others]}
    job = Job(client=client, namespace=namespace)
    await cordon(client, other, is_on=True)
    await job.create(replicas=2, worker_spec={"affinity": {"nodeAffinity": mine}})
    first, second, third = job.workers(0, 1, 2)

    before = await job.settled(2)
    await job.set_status(second, FAILED)
    await job.replaced(before, second)
    state = await job.settled(2)
    assert place(state, second) == (faulty, mine)
    assert "NodesAvoided" not in state.notices

    await cordon(client, other, is_on=False)
    await job.set_status(first, FAILED)
    await job.replaced(state, first)
    state = await job.settled(2)
    assert place(state, first) == (other, avoiding)
    assert f"NodesAvoided: {faulty}: " in state.notices
    await job.told("NodesAvoided", f"{faulty}: ")

    await cordon(client, other, is_on=True)
    await job.scale(3)
    state = await job.settled(3)
    assert place(state, third) == (faulty, avoiding)

"""A queue of Kueue that assigns nodes: pods go to the nodes that Kueue chose, and are counted once."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.kueue.topology import HOSTNAME, REQUIRED
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job, State
from tests.lab.pools import POOL, make_nodes, remove_nodes
from tests.lab.waiting import PATIENCE, kubectl_until_done
from tests.peers.kueue import API
from tests.peers.queued_jobs import ONE_GPU, QUICK, workloads
from tests.peers.queues import example

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]


@pytest.fixture
async def assigning(cluster: Cluster, client: ApiWriter, namespace: str) -> AsyncIterator[str]:
    """A queue for two nodes with four GPUs each, which it assigns; returns the label."""
    await make_nodes(client, namespace, gpus=4)
    items = example("queues")
    flavor, team, local = items["ResourceFlavor"], items["ClusterQueue"], items["LocalQueue"]
    flavor["spec"] |= {"nodeLabels": {POOL: namespace}, "topologyName": namespace}
    local["metadata"]["namespace"] = local["spec"]["clusterQueue"] = namespace
    [of_gpu] = team["spec"]["resourceGroups"][0]["flavors"]
    of_gpu["name"] = flavor["metadata"]["name"] = team["metadata"]["name"] = namespace
    of_gpu["resources"][-1]["nominalQuota"] = 8
    levels = [{"nodeLabel": POOL}, {"nodeLabel": HOSTNAME}]
    topology = {"kind": "Topology", "metadata": {"name": namespace}, "spec": {"levels": levels}}
    for item in (topology, flavor, team, local):
        item["apiVersion"] = API
        kubectl_until_done(cluster, "apply", "-f", "-", stdin=json.dumps(item), patience=PATIENCE)
    yield local["metadata"]["name"]
    await remove_nodes(client, namespace)


def has_nodes(state: State) -> bool:
    """Tell whether each worker has a node; one that was just made waits for it at its gate."""
    return all("nodeName" in pod["spec"] for pod in state.workers.values())


async def used(*jobs: Job) -> Counter[str]:
    """Return how many workers each node has; each worker is where its selector says."""
    states = [await job.until(has_nodes, "a node for each worker") for job in jobs]
    pods = [pod["spec"] for state in states for pod in state.workers.values()]
    assert all(spec["nodeSelector"][HOSTNAME] == spec["nodeName"] for spec in pods)
    return Counter(spec["nodeName"] for spec in pods)


async def test_two_jobs_of_four_fill_two_nodes_of_four_and_replacements_get_nodes_again(
    job: Job, client: ApiWriter, assigning: str
) -> None:
    """Kueue counted each worker twice, as load of others too, so half of the GPUs stayed idle."""
    labels = {LABEL_QUEUE: assigning}
    other = Job(client=client, namespace=job.namespace, name="other")
    await job.create(replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    before = await job.settled(4)
    # Each pod is where Kueue counts it, and none counts as load that is not Kueue's.
    await other.create(
        replicas=4,
        worker_spec=ONE_GPU,
        worker_annotations={REQUIRED: POOL},
        annotations=QUICK,
        job_labels=labels,
    )
    full = {f"{job.namespace}-0": 4, f"{job.namespace}-1": 4}
    await other.settled(4)
    assert await used(job, other) == full
    for name in job.workers(1, 3):  # of the base, and an extra
        await client.delete_object(resources.PODS.path(job.namespace, name))
    await job.replaced(before, *job.workers(1, 3))
    await job.settled(4)
    assert await used(job, other) == full
    # An extra asks for the domain of the base, where its template requires one.
    asked = (await workloads(other))["other-worker-3"]["spec"]["podSets"][0]
    assert asked["topologyRequest"] == {"required": POOL}
    assert asked["template"]["spec"]["nodeSelector"] == {POOL: job.namespace}


async def gpus(client: ApiWriter, node: str, number: int) -> None:
    """Give a node so many GPUs."""
    room = {"nvidia.com/gpu": str(number)}
    body = {"status": {"capacity": room, "allocatable": room}}
    path = resources.NODES.path(None, node, "status")
    await client.patch_object(path, body=body, content_type=MERGE_PATCH)


async def test_workers_of_a_node_that_is_gone_start_where_kueue_assigns_them_instead(
    job: Job, client: ApiWriter, assigning: str
) -> None:
    """Kueue 0.19.2 may evict the job, although a node is free; after that the job waited for ever."""
    first, second = (f"{job.namespace}-{index}" for index in range(2))
    await gpus(client, second, 0)
    await job.create(
        replicas=3,
        worker_spec=ONE_GPU,
        launcher_spec={"nodeSelector": {HOSTNAME: second}},
        annotations=QUICK,
        job_labels={LABEL_QUEUE: assigning},
    )
    before = await job.settled(3)
    assert await used(job) == {first: 3}
    await gpus(client, second, 4)
    await asyncio.sleep(1)  # Kueue sees these GPUs
    await client.delete_object(resources.NODES.path(None, first))
    await job.replaced(before, *job.workers(0, 1, 2))
    await job.settled(3)
    assert await used(job) == {second: 3}

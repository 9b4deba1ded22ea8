"""Nodes of one test's own, on which workers are spread."""

import contextlib
from functools import partial
from typing import Any

import msgspec

from lab.nodes import RESOURCES, node, usable
from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.waiting import seen

Object = dict[str, Any]
POOL = "pool"
# So that some workers stay when a node goes; where they cannot be spread, all leave, one later.
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER}},
}


def on_pool(pool: str) -> Object:
    """Return what in a pod's spec puts it on the nodes of the pool."""
    return {"nodeSelector": {POOL: pool}, "topologySpreadConstraints": [SPREAD]}


async def make_nodes(
    client: ApiWriter, pool: str, *taints: Object, gpus: int | None = None
) -> None:
    """Make the nodes POOL-0 and POOL-1, each with so many GPUs, and wait until pods can be scheduled there."""
    like = await _look(client, "lab-0")
    version = like["status"]["nodeInfo"]["kubeletVersion"]
    port = like["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    made = node(0, kubernetes_version=version, kubelet_port=port)
    if gpus is not None:
        room = {**RESOURCES, "nvidia.com/gpu": str(gpus)}
        made["status"] |= {"capacity": room, "allocatable": room}
    wanted = [f"{pool}-{index}" for index in range(2)]
    for name in wanted:
        labels = {**made["metadata"]["labels"], "kubernetes.io/hostname": name, POOL: pool}
        body = {
            **made,
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(taints)},
        }
        await client.create_object(resources.NODES.path(), body=body)
    for name in wanted:
        await seen(partial(_look, client, name), usable, f"node {name}")


async def remove_nodes(client: ApiWriter, pool: str) -> None:
    """Remove those that are left."""
    for index in range(2):
        with contextlib.suppress(errors.NotFound):
            await client.delete_object(resources.NODES.path(None, f"{pool}-{index}"))


async def _look(client: ApiWriter, name: str) -> Object:
    found: Object = msgspec.json.decode(await client.get(resources.NODES.path(None, name)))
    return found

"""The machines of a trace as nodes of a lab: each has a GPU, and no name is used twice."""

from typing import Any

import msgspec

from bench.spot.trace import Kind, Move
from lab import nodes
from lab.cluster import Cluster
from mpijob_elastic.kube.resources import NODES, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

POOL = "bench.mpijob-elastic/pool"
# The taint that AWS node termination handler sets at a spot interruption
# (https://github.com/aws/aws-node-termination-handler, --taint-node).
TAINT = {"key": "aws-node-termination-handler/spot-itn", "value": "true", "effect": "NoSchedule"}
# The lab's own first node is the on-demand machine of the launchers.
ON_DEMAND = "lab-0"


class Pool:
    """The nodes of a side, labelled with its name.

    gone: nodes that were taken. usable: nodes that take new pods.
    """

    def __init__(self, cluster: Cluster, client: ApiWriter, *, name: str, namespace: str) -> None:
        self._version = cluster.options.kubernetes_version
        self._client = client
        self._name = name
        self._namespace = namespace
        self._port: int | None = None
        self.gone: set[str] = set()
        self.usable: set[str] = set()

    async def prepare(self) -> None:
        """Read the port that serves `kubectl exec`. Raises as `ApiReader` does."""
        status = msgspec.json.decode(await self._client.get(NODES.path(name=ON_DEMAND)))["status"]
        self._port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port")

    async def make(self, move: Move) -> None:
        """Carry out a move of the trace. Raises as `ApiReader` does."""
        name = f"{self._name}-{move.name}"
        if move.kind is Kind.UP:
            await self._client.create_object(NODES.path(), body=self.node(name))
            self.usable.add(name)
        elif move.kind is Kind.NOTICE:
            self.usable.discard(name)
            patch = {"spec": {"taints": [TAINT]}}
            await self._client.patch_object(
                NODES.path(name=name), body=patch, content_type=MERGE_PATCH
            )
        else:
            await self._take(name)

    def node(self, name: str) -> dict[str, Any]:
        """Return a machine as its kubelet would register it."""
        made = nodes.node(0, kubernetes_version=self._version, kubelet_port=self._port)
        room = {**nodes.RESOURCES, "nvidia.com/gpu": "1"}
        made["metadata"] = {"name": name, "labels": {**made["metadata"]["labels"], **self.selector}}
        made["metadata"]["labels"]["kubernetes.io/hostname"] = name
        made["status"] |= {"capacity": room, "allocatable": room}
        return made

    @property
    def selector(self) -> dict[str, str]:
        """The nodeSelector for pods of this pool."""
        return {POOL: self._name}

    async def close(self) -> None:
        """Remove all remaining nodes. Raises as `ApiReader` does."""
        await self._client.delete_object(
            NODES.path(), query={"labelSelector": f"{POOL}={self._name}"}
        )

    async def _take(self, name: str) -> None:
        """Delete a machine and its pods.

        In a real cluster the pods stay for about a minute, until pod garbage collection. Here they
        go at once, which favours a side that does not watch nodes.
        """
        self.usable.discard(name)
        self.gone.add(name)
        await self._client.delete_object(NODES.path(name=name))
        query = {"fieldSelector": f"spec.nodeName={name}"}
        await self._client.delete_object(
            PODS.path(self._namespace), options={"gracePeriodSeconds": 0}, query=query
        )

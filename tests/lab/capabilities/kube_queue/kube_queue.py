"""A double of KubeQueue, whose controllers cannot be had here: its definitions, and what its scheduler does.

Written by us from the public types, and no more of them than is used here: QueueUnit of
kube-queue/api and koordinator-sh/koord-queue (pkg/apis/scheduling/v1alpha1), ElasticQuotaTree of
the latter (pkg/framework/apis/elasticquota/scheduling/v1beta1).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kube_queue.facts import QUEUE_UNITS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.definitions import definition
from tests.lab.upgrades import established, gone

TREES = Resource(
    group="scheduling.sigs.k8s.io",
    version="v1beta1",
    plural="elasticquotatrees",
    kind="ElasticQuotaTree",
)
# Seconds between two looks at the queue.
_PACE = 0.2


@contextmanager
def served(cluster: Cluster, *, subresource: bool = True) -> Iterator[None]:
    """Have the API server serve QueueUnits and trees while the block lasts; subresource: the status is one."""
    found = [definition(QUEUE_UNITS, status=subresource), definition(TREES)]
    for one in found:
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(one))
        established(cluster, f"crd/{one['metadata']['name']}")
    yield
    for one in found:
        gone(cluster, f"crd/{one['metadata']['name']}")


class Scheduler:
    """KubeQueue's scheduler for one namespace: by priority, then age, within the quota of its leaf in the tree."""

    def __init__(self, client: ApiWriter, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write phases while the block lasts."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task.exception()

    async def units(self) -> list[dict[str, Any]]:
        """Return the QueueUnits, the next first."""
        raw = await self._client.get(QUEUE_UNITS.path(self._namespace))
        found: list[dict[str, Any]] = msgspec.json.decode(raw)["items"]

        def order(unit: dict[str, Any]) -> tuple[int, str, int]:
            metadata = unit["metadata"]
            created = metadata["creationTimestamp"], int(metadata["resourceVersion"])
            return -unit["spec"].get("priority", 0), *created

        return sorted(found, key=order)

    async def phase(self, name: str) -> str:
        """Return the phase of a QueueUnit, "" if it has none or is not there."""
        units = {unit["metadata"]["name"]: unit for unit in await self.units()}
        phase: str = units.get(name, {}).get("status", {}).get("phase", "")
        return phase

    async def say(self, name: str, phase: str, message: str = "") -> None:
        """Write the phase of a QueueUnit, wherever its definition keeps it."""
        body = {
            "status": {"phase": phase, "message": message, "lastUpdateTime": "2026-01-01T00:00:00Z"}
        }
        for part in ("status", None):
            path = QUEUE_UNITS.path(self._namespace, name, part)
            try:
                await self._client.patch_object(path, body=body, content_type=MERGE_PATCH)
            except errors.NotFound:
                continue
            return

    async def _run(self) -> None:
        while True:
            await self._step()
            await asyncio.sleep(_PACE)

    async def _step(self) -> None:
        units, most = await self.units(), await self._most()
        used = sum(
            _cpus(unit)
            for unit in units
            if unit.get("status", {}).get("phase") in ("Dequeued", "Running")
        )
        for unit in units:
            name, phase = unit["metadata"]["name"], unit.get("status", {}).get("phase", "")
            if not phase:
                await self.say(name, "Enqueued")
            elif phase == "Enqueued" and used + _cpus(unit) <= most:
                used += _cpus(unit)
                await self.say(name, "Dequeued")
            elif phase == "Enqueued" and not unit["status"].get("message"):
                await self.say(name, phase, "Insufficient quota(cpu)")

    async def _most(self) -> float:
        trees = msgspec.json.decode(await self._client.get(TREES.path("kube-system")))["items"]
        leaves = [leaf for tree in trees for leaf in tree["spec"]["root"]["children"]]
        return sum(
            float(leaf["max"]["cpu"]) for leaf in leaves if self._namespace in leaf["namespaces"]
        )


def _cpus(unit: dict[str, Any]) -> float:
    text: str = unit["spec"]["resource"].get("cpu", "0")
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)

"""The operator's writes, held back as its clients hold them back."""

import asyncio
from collections import defaultdict
from typing import Any

import msgspec

from lab.operator.job import MPIJob
from lab.operator.kinds import EVENTS, MPI_JOBS, Resource
from lab.operator.limits import TokenBucket
from lab.operator.wire import Dependent, Status
from mpijob_elastic.kube.reader import JSON
from mpijob_elastic.kube.writer import STRATEGIC_MERGE_PATCH, ApiWriter


class Writer:
    """Writes to the API server; each API group has a limit of its own, which pods, ConfigMaps and Events share."""

    def __init__(self, client: ApiWriter, *, qps: float, burst: int) -> None:
        self._client = client
        self._buckets: defaultdict[str, TokenBucket] = defaultdict(lambda: TokenBucket(rate=qps, burst=burst))

    async def create(self, resource: Resource, namespace: str, body: dict[str, Any]) -> int:
        """Create an object and return its resourceVersion; raise KubeError."""
        return _version(await self._request("POST", resource, resource.path(namespace), body))

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete an object with its own grace period; raise KubeError."""
        await self._request("DELETE", resource, resource.path(namespace, name))

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        """Change an Event; raise KubeError."""
        path = EVENTS.path(namespace, name)
        await self._request("PATCH", EVENTS, path, patch, content_type=STRATEGIC_MERGE_PATCH)

    async def update_status(self, job: MPIJob, status: Status) -> int:
        """Replace the job's status, if nobody has changed the job since it was read; return its new resourceVersion.

        Raise KubeError.
        """
        metadata = {key: value for key, value in job.metadata.items() if key != "managedFields"}
        body = {
            "apiVersion": MPI_JOBS.api_version,
            "kind": MPI_JOBS.kind,
            "metadata": metadata,
            "spec": job.with_defaults().spec,
            "status": status,
        }
        path = MPI_JOBS.path(job.namespace, job.name, "status")
        return _version(await self._request("PUT", MPI_JOBS, path, body))

    async def _request(
        self, method: str, resource: Resource, path: str, body: object = None, *, content_type: str = JSON
    ) -> bytes:
        delay = self._buckets[resource.group].reserve(asyncio.get_running_loop().time())
        if delay:
            await asyncio.sleep(delay)
        return await self._client._call_api(  # noqa: SLF001 - one door for every verb, held back alike
            method, path, body=body, content_type=content_type
        )


def _version(answer: bytes) -> int:
    return msgspec.json.decode(answer, type=Dependent).version

"""A second writer of discover_hosts.sh in the form and under the name of an elastic operator.

It keeps our annotations on the ConfigMap, which mpi-operator v0.3.0 drops: it replaces the
ConfigMap whole.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

LOOK_EVERY = 0.05  # seconds


@asynccontextmanager
async def writing(kubeconfig: Path, namespace: str) -> AsyncIterator[None]:
    """Write the host list of every job of a namespace for as long as the block lasts."""
    async with await connect(user_agent="mpi-operator", kubeconfig=kubeconfig) as client:
        task = asyncio.create_task(_write(client, namespace))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _write(client: ApiWriter, namespace: str) -> None:
    while True:
        for job in await _list(client, MPI_JOBS, namespace, ""):
            with contextlib.suppress(errors.Conflict, errors.NotFound):
                await _write_hosts(client, namespace, job["metadata"]["name"])
        await asyncio.sleep(LOOK_EVERY)


async def _write_hosts(client: ApiWriter, namespace: str, job: str) -> None:
    selector = f"{names.LABEL_JOB_NAME}={job},{names.LABEL_JOB_ROLE}={names.ROLE_WORKER}"
    workers = await _list(client, PODS, namespace, selector)
    running = sorted(
        pod["metadata"]["name"] for pod in workers if pod["status"].get("phase") == "Running"
    )
    # No newline at the end, as upstream has it.
    script = "\n".join(["#!/bin/sh", *(f"echo {name}:1" for name in running)])
    path = CONFIG_MAPS.path(namespace, names.config_map(job))
    there = msgspec.json.decode(await client.get(path))["data"].get(names.KEY_DISCOVER_HOSTS)
    if there != script:
        body = {"data": {names.KEY_DISCOVER_HOSTS: script}}
        await client.patch_object(path, body=body, content_type=MERGE_PATCH)


async def _list(
    client: ApiWriter, resource: Resource, namespace: str, selector: str
) -> list[dict[str, Any]]:
    query = {"labelSelector": selector} if selector else {}
    raw = await client.get(resource.path(namespace), query=query)
    items: list[dict[str, Any]] = msgspec.json.decode(raw)["items"]
    return items

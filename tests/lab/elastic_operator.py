"""An operator that is elastic itself takes over: mpi-operator v0.3.0 as read from its source, or the real one.

Of what v0.3.0 does to a job only that is done which concerns jobs of v0.2.3: ConfigMap and Role are replaced whole
wherever they differ, missing workers are created with a label that numbers them, and surplus ones with that label are
deleted; as soon as one without it is among them, nothing at all is done about workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from lab.cluster import Cluster
from lab.operator import pods, shared
from lab.operator.job import MPIJob
from lab.operator.pods import PodOptions
from lab.operator.process import Operator
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.kube.writer import ApiWriter

# The binary of a release that is elastic itself, to be run in place of this one.
VARIABLE = "PEER_OPERATOR_BIN"
LOOK_EVERY = 0.05  # seconds
Object = dict[str, Any]


@asynccontextmanager
async def running(
    cluster: Cluster, client: ApiWriter, namespace: str, *, keeps_annotations: bool = False
) -> AsyncIterator[None]:
    """Run one for a namespace; keeps_annotations: write the data of a ConfigMap only, as v2beta1 does."""
    binary = os.environ.get(VARIABLE)
    if binary and not keeps_annotations:
        with Operator.start(cluster, namespace=namespace, binary=Path(binary)):
            yield
        return
    task = asyncio.create_task(_run(client, namespace, keeps_annotations=keeps_annotations))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _run(client: ApiWriter, namespace: str, *, keeps_annotations: bool) -> None:
    while True:
        for raw in await _list(client, MPI_JOBS, namespace):
            with contextlib.suppress(errors.Conflict, errors.NotFound, errors.AlreadyExists):
                await _sync(client, msgspec.convert(raw, MPIJob).with_defaults(), keeps_annotations=keeps_annotations)
        await asyncio.sleep(LOOK_EVERY)


async def _sync(client: ApiWriter, job: MPIJob, *, keeps_annotations: bool) -> None:
    workers = await _list(client, PODS, job.namespace, f"mpi-job-name={job.name},mpi-job-role=worker")
    slots = job.spec.get("slotsPerWorker") or 1
    running_ = sorted(pod["metadata"]["name"] for pod in workers if pod["status"].get("phase") == "Running")
    config = shared.config_map(job)
    # No newline at the end.
    config["data"]["discover_hosts.sh"] = "\n".join(["#!/bin/sh", *(f"echo {name}:{slots}" for name in running_)])
    await _replace(client, CONFIG_MAPS, config, "data", keeps_annotations=keeps_annotations)
    await _replace(client, ROLES, shared.role(job), "rules", keeps_annotations=False)
    await _size(client, job, workers)


async def _replace(
    client: ApiWriter, resource: Resource, wanted: Object, content: str, *, keeps_annotations: bool
) -> None:
    path = resource.path(wanted["metadata"]["namespace"], wanted["metadata"]["name"])
    there: Object = msgspec.json.decode(await client.get(path))
    if there[content] == wanted[content]:
        return
    if keeps_annotations:
        wanted["metadata"]["annotations"] = there["metadata"].get("annotations", {})
    await client.replace_object(path, body=wanted)


async def _size(client: ApiWriter, job: MPIJob, workers: list[Object]) -> None:
    wanted = job.workers
    if len(workers) > len(wanted):
        for pod in workers:
            if "replica-index" not in pod["metadata"]["labels"]:
                return
            if int(pod["metadata"]["labels"]["replica-index"]) >= len(wanted):
                await client.delete_object(PODS.path(job.namespace, pod["metadata"]["name"]))
    there = {pod["metadata"]["name"] for pod in workers}
    for index, name in enumerate(wanted):
        if name not in there:
            pod = pods.worker(job, name=name, options=PodOptions())
            pod["metadata"]["labels"]["replica-index"] = str(index)
            await client.create_object(PODS.path(job.namespace), body=pod)


async def _list(client: ApiWriter, resource: Resource, namespace: str, selector: str = "") -> list[Object]:
    query = {"labelSelector": selector} if selector else {}
    items: list[Object] = msgspec.json.decode(await client.get(resource.path(namespace), query=query))["items"]
    return items

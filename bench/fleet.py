"""Many jobs with their objects, as mpi-operator v0.2.3 would have created them.

The benchmark creates them, because the operator's limit of 5 writes a second would take an hour for
10,000 pods. Pods are bound to nodes from the start, which bypasses the scheduler; kwok lets them
run.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from bench import jobs
from lab.errors import LabError
from lab.operator import objects
from lab.operator.objects import ROLE_BINDINGS, SERVICE_ACCOUNTS
from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS, ROLES, Resource
from mpijob_elastic.kube.writer import ApiWriter

AT_ONCE = 32
# Seconds until all pods run: for each pod, and the minimum.
PATIENCE_A_POD, PATIENCE = 0.05, 240.0
POLL = 0.5
# Jobs between two reports of progress.
STEP = 10


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """`count` jobs, each of a launcher and `workers` workers."""

    count: int
    workers: int

    @property
    def pods(self) -> int:
        """Number of pods."""
        return self.count * (self.workers + 1)

    @property
    def names(self) -> list[str]:
        """Names of the jobs."""
        return [f"{jobs.JOB}-{index}" for index in range(self.count)]


async def make(
    client: ApiWriter, fleet: Fleet, *, namespace: str, nodes: int, say: Callable[[str], None]
) -> None:
    """Create the fleet and wait until every pod runs.

    Raises LabError, and what `ApiReader` raises.
    """
    slots = asyncio.Semaphore(AT_ONCE)
    made = 0

    async def make_job(index: int, name: str) -> None:
        nonlocal made
        async with slots:
            body = jobs.manifest(name, replicas=fleet.workers, drain_timeout=jobs.AT_ONCE)
            job = msgspec.json.decode(await jobs.create(client, namespace, body))
            for resource, object_ in owned(job, node=f"lab-{index % nodes}"):
                await client.create_object(resource.path(namespace), body=object_)
        made += 1
        if made % STEP == 0:
            say(f"{made} of {fleet.count} jobs of {fleet.workers} workers made")

    await asyncio.gather(*(make_job(index, name) for index, name in enumerate(fleet.names)))
    await _all_run(client, fleet, namespace=namespace)


def owned(job: dict[str, Any], *, node: str) -> list[tuple[Resource, dict[str, Any]]]:
    """Return an MPIJob's objects in the operator's order, as our webhook lets them pass; its pods are on `node`."""
    config, launcher = objects.config_map(job), objects.launcher(job)
    config["data"][names.KEY_DISCOVER_HOSTS] = names.discover_hosts([], slots=1)
    item = {
        "key": names.KEY_DISCOVER_HOSTS,
        "path": names.KEY_DISCOVER_HOSTS,
        "mode": names.MODE_EXECUTABLE,
    }
    for volume in launcher["spec"]["volumes"]:
        if volume["name"] == names.CONFIG_VOLUME:
            volume["configMap"]["items"].append(item)
    made = [objects.worker(job, index) for index in range(len(objects.workers(job)))]
    for pod in (*made, launcher):
        pod["spec"]["nodeName"] = node
    return [
        (CONFIG_MAPS, config),
        (SERVICE_ACCOUNTS, objects.service_account(job)),
        (ROLES, objects.role(job)),
        (ROLE_BINDINGS, objects.role_binding(job)),
        *((PODS, pod) for pod in made),
        (PODS, launcher),
    ]


async def _all_run(client: ApiWriter, fleet: Fleet, *, namespace: str) -> None:
    # One object from the API server's cache: this costs next to nothing.
    path = PODS.path(namespace)
    query = {"fieldSelector": "status.phase!=Running", "limit": "1", "resourceVersion": "0"}
    try:
        async with asyncio.timeout(max(PATIENCE, PATIENCE_A_POD * fleet.pods)):
            while msgspec.json.decode(await client.get(path, query=query))["items"]:  # noqa: ASYNC110
                await asyncio.sleep(POLL)
    except TimeoutError:
        raise LabError(
            f"not all {fleet.pods} pods of {namespace} run: see the log of kwok"
        ) from None

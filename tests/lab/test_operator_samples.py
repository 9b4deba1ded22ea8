"""The samples in lab/operator/samples are what the operator makes of their jobs.

Samples lack times, uids, versions, tokens of ServiceAccounts, which node a pod is on, and of a
pod's status all but phase and reason.
"""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator import objects
from lab.operator.objects import ROLE_BINDINGS, SERVICE_ACCOUNTS, UID
from lab.operator.process import Operator
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.kube.writer import ApiWriter

pytestmark = pytest.mark.lab
NAMESPACE = "default"  # the samples'
PATIENCE = 120.0  # seconds
POLL = 0.1
Object = dict[str, Any]

OWNED = [PODS, CONFIG_MAPS, ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS]
TIMES = {"lastTransitionTime", "lastUpdateTime", "startTime", "completionTime"}
NODE = "kwok-0"
TOKEN_VOLUME = "kube-api-access-"


@pytest.mark.parametrize(
    "name", ["two-workers", pytest.param("main-container", marks=pytest.mark.campaign)]
)
async def test_a_sample_is_what_the_operator_makes(
    cluster: Cluster, client: ApiWriter, name: str
) -> None:
    sample = objects.sample(name)
    job = next(item for key, item in sample.items() if key.startswith("MPIJob/"))
    path = MPI_JOBS.path(NAMESPACE)
    with Operator.start(cluster, namespace=NAMESPACE, qps=0):
        await client.create_object(path, body={key: job[key] for key in job if key != "status"})
        try:
            deadline = time.monotonic() + PATIENCE
            found = await look(client, NAMESPACE, job["metadata"]["name"])
            while found != sample and time.monotonic() < deadline:
                await asyncio.sleep(POLL)
                found = await look(client, NAMESPACE, job["metadata"]["name"])
            assert found == sample
        finally:
            await client.delete_object(MPI_JOBS.path(NAMESPACE, job["metadata"]["name"]))


async def look(client: ApiWriter, namespace: str, job: str) -> dict[str, Object]:
    """Return the job and everything that it owns, by KIND/NAME, as samples show it."""
    jobs = await _list(client, MPI_JOBS, namespace)
    owned = [
        _with_kind(item, resource)
        for resource in OWNED
        for item in await _list(client, resource, namespace)
        if _owner(item) == job
    ]
    uids = {item["metadata"]["uid"] for item in jobs}
    of_job = [item for item in jobs if item["metadata"]["name"] == job] + owned
    return {
        f"{item['kind']}/{item['metadata']['name']}": _normalised(item, uids) for item in of_job
    }


async def _list(client: ApiWriter, resource: Resource, namespace: str) -> list[Object]:
    items: list[Object] = msgspec.json.decode(await client.get(resource.path(namespace)))["items"]
    return items


def _with_kind(item: Object, resource: Resource) -> Object:
    # The items of a list of built-in kinds lack these two.
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}


def _owner(item: Object) -> str | None:
    owners = item["metadata"].get("ownerReferences", [])
    return next((owner["name"] for owner in owners if owner["kind"] == MPI_JOBS.kind), None)


def _normalised(item: Object, jobs: set[str]) -> Object:
    rest = {key: value for key, value in item.items() if key != "metadata"}
    metadata = _metadata(item["metadata"], jobs)
    if item["kind"] == PODS.kind:
        rest = {**rest, "spec": _pod_spec(item["spec"]), "status": _pod_status(item["status"])}
    if item["kind"] == MPI_JOBS.kind:
        rest = _without_times(rest)
    return {**rest, "metadata": metadata}


def _metadata(metadata: Object, jobs: set[str]) -> Object:
    kept: Object = {
        key: metadata[key]
        for key in ("name", "namespace", "labels", "annotations")
        if key in metadata
    }
    if "ownerReferences" in metadata:
        kept["ownerReferences"] = [
            _owner_reference(owner, jobs) for owner in metadata["ownerReferences"]
        ]
    return kept


def _owner_reference(owner: Object, jobs: set[str]) -> Object:
    return {**owner, "uid": UID} if owner["uid"] in jobs else owner


def _pod_spec(spec: Object) -> Object:
    spec = {**spec, "volumes": [volume for volume in spec["volumes"] if not _is_token(volume)]}
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_container(container) for container in spec[key]]
    return {**spec, "nodeName": NODE} if "nodeName" in spec else spec


def _container(container: Object) -> Object:
    mounts = [mount for mount in container.get("volumeMounts", []) if not _is_token(mount)]
    return {**container, "volumeMounts": mounts}


def _is_token(volume: Object) -> bool:
    return str(volume["name"]).startswith(TOKEN_VOLUME)


def _pod_status(status: Object) -> Object:
    return {key: status[key] for key in ("phase", "reason") if key in status}


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "<time>" if key in TIMES else _without_times(item) for key, item in value.items()
        }
    return [_without_times(item) for item in value] if isinstance(value, list) else value

"""The objects of one job on an API server, normalised as the recordings are.

Taken out are times, uids, versions, tokens of ServiceAccounts, which node a pod is on, and all of a pod's status but
phase and reason.
"""

from typing import Any

import msgspec

from lab.operator.kinds import (
    CONFIG_MAPS,
    EVENTS,
    MPI_JOBS,
    POD_GROUPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.recording import World

Object = dict[str, Any]

OWNED = [PODS, CONFIG_MAPS, ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS, POD_GROUPS]
TIMES = {"lastTransitionTime", "lastUpdateTime", "startTime", "completionTime"}
NODE = "kwok-0"
TOKEN_VOLUME = "kube-api-access-"
COMPONENT = "mpi-job-controller"


async def look(client: ApiWriter, *, namespace: str, job: str) -> World:
    """Return the job, everything that it owns and its Events; without the job, what bears its name as owner."""
    jobs = await _list(client, MPI_JOBS, namespace)
    owned = [
        _with_kind(item, resource)
        for resource in OWNED
        for item in await _list(client, resource, namespace)
        if _owner(item) == job
    ]
    objects = [item for item in jobs if item["metadata"]["name"] == job] + owned
    uids = {item["metadata"]["uid"] for item in jobs}
    world: World = {f"{item['kind']}/{item['metadata']['name']}": _normalised(item, uids) for item in objects}
    events = await _list(client, EVENTS, namespace)
    return {**world, "Events": sorted(_event(event) for event in events if _is_operators(event, job))}


async def _list(client: ApiWriter, resource: Resource, namespace: str) -> list[Object]:
    items: list[Object] = msgspec.json.decode(await client.get(resource.path(namespace)))["items"]
    return items


def _with_kind(item: Object, resource: Resource) -> Object:
    # The items of a list of built-in kinds lack these two.
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}


def _owner(item: Object) -> str | None:
    owners = item["metadata"].get("ownerReferences", [])
    return next((owner["name"] for owner in owners if owner["kind"] == MPI_JOBS.kind), None)


def _is_operators(event: Object, job: str) -> bool:
    regarding = event["involvedObject"]
    subject = event["source"].get("component"), regarding["kind"], regarding["name"]
    return bool(subject == (COMPONENT, MPI_JOBS.kind, job))


def _event(event: Object) -> str:
    regarding = event["involvedObject"]
    return f"{event['type']} {event['reason']} {regarding['kind']}/{regarding['name']}: {event['message']}"


def _normalised(item: Object, jobs: set[str]) -> Object:
    rest = {key: value for key, value in item.items() if key != "metadata"}
    metadata = _metadata(item["metadata"], jobs)
    if item["kind"] == PODS.kind:
        rest = {**rest, "spec": _pod_spec(item["spec"]), "status": _pod_status(item["status"])}
    if item["kind"] == MPI_JOBS.kind:
        rest = _without_times(rest)
    return {**rest, "metadata": metadata}


def _metadata(metadata: Object, jobs: set[str]) -> Object:
    kept: Object = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}
    if "ownerReferences" in metadata:
        kept["ownerReferences"] = [_owner_reference(owner, jobs) for owner in metadata["ownerReferences"]]
    return kept


def _owner_reference(owner: Object, jobs: set[str]) -> Object:
    return {**owner, "uid": "<uid of the MPIJob>"} if owner["uid"] in jobs else owner


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
        return {key: "<time>" if key in TIMES else _without_times(item) for key, item in value.items()}
    return [_without_times(item) for item in value] if isinstance(value, list) else value

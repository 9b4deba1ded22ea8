"""A side's job on the API server: what model and replay need of it, and its age."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench import jobs
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiWriter
from mpijob_elastic.model.memory import Memory, parse_memory, render_memory

# Seconds since the epoch. A smaller number is not a time, or an unset time.
EARLIEST = 1e9


@dataclass(frozen=True, kw_only=True)
class World:
    """Pods and ConfigMap of the job.

    running: uid of each worker pod that runs on an existing machine, by pod name. script, hostfile
    (its names): content of the ConfigMap. launcher: uid of the launcher pod, "" without launcher.
    started: True if it runs. touch: its annotations.
    """

    running: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    hostfile: tuple[str, ...] = ()
    launcher: str = ""
    started: bool = False
    touch: str = ""


async def look(client: ApiWriter, namespace: str, *, gone: Collection[str]) -> World:
    """Read the job; `gone` are the taken machines. Raises as `ApiReader` does."""
    # From the API server's cache: this costs next to nothing, and is a few milliseconds old.
    query = {"labelSelector": f"{names.LABEL_JOB_NAME}={jobs.JOB}", "resourceVersion": "0"}
    listed, config = await asyncio.gather(
        client.get(PODS.path(namespace), query=query), _config(client, namespace)
    )
    data = config.get("data", {})
    pods = {pod["metadata"]["name"]: pod for pod in msgspec.json.decode(listed)["items"]}
    launcher = pods.get(names.launcher(jobs.JOB))
    workers = {name: pod for name, pod in pods.items() if pod is not launcher}
    return World(
        running={
            name: pod["metadata"]["uid"] for name, pod in workers.items() if _trains(pod, gone)
        },
        script=data.get(names.KEY_DISCOVER_HOSTS, ""),
        hostfile=tuple(line.split()[0] for line in data.get(names.KEY_HOSTFILE, "").splitlines()),
        launcher=launcher["metadata"]["uid"] if launcher else "",
        started=launcher is not None and launcher["status"].get("phase") == "Running",
        touch=str(sorted(launcher["metadata"].get("annotations", {}).items())) if launcher else "",
    )


def _trains(pod: Mapping[str, Any], gone: Collection[str]) -> bool:
    there = (
        "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName", "") not in gone
    )
    return there and pod["status"].get("phase") == "Running"


async def _config(client: ApiWriter, namespace: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(await client.get(_config_path(namespace)))
    except errors.NotFound:
        return {}
    return found


def _config_path(namespace: str) -> str:
    return CONFIG_MAPS.path(namespace, names.config_map(jobs.JOB))


async def shift(client: ApiWriter, namespace: str, *, seconds: float) -> bool:
    """Make all times on objects older by `seconds`; return False if another write came between, so nothing may jump.

    The controller decides by how long ago something was: when a host left the list, when a worker
    was moved, since when a pod has been Ready. Its own clock cannot jump, so the times on objects
    move instead. Raises as `ApiReader` does.
    """
    try:
        await _shift_memory(client, namespace, seconds)
        listed = await client.get(
            PODS.path(namespace), query={"labelSelector": names.worker_selector(jobs.JOB)}
        )
        await asyncio.gather(
            *(_shift_pod(client, pod, seconds) for pod in msgspec.json.decode(listed)["items"])
        )
    except (errors.Conflict, errors.NotFound):
        return False
    return True


def _shifted(json: Any, seconds: float) -> Any:
    """Return JSON with every time moved back: the fields `at` and `..._at` at any depth."""
    if not isinstance(json, dict):
        return json
    return {
        key: value - seconds if _is_time(key, value) else _shifted(value, seconds)
        for key, value in json.items()
    }


def _is_time(key: str, value: object) -> bool:
    return (
        (key == "at" or key.endswith("_at")) and isinstance(value, int | float) and value > EARLIEST
    )


async def _shift_memory(client: ApiWriter, namespace: str, seconds: float) -> None:
    metadata = (await _config(client, namespace)).get("metadata", {})
    memory = parse_memory(metadata.get("annotations", {}).get(names.MEMORY))
    if memory is not None:
        moved = msgspec.convert(_shifted(msgspec.to_builtins(memory), seconds), Memory)
        annotations = {names.MEMORY: render_memory(moved)}
        change = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
        await client.patch_object(
            _config_path(namespace), body={"metadata": change}, content_type=MERGE_PATCH
        )


async def _shift_pod(client: ApiWriter, pod: dict[str, Any], seconds: float) -> None:
    for condition in pod["status"].get("conditions", ()):
        if (condition["type"], condition["status"]) == ("Ready", "True"):
            at = datetime.fromisoformat(condition["lastTransitionTime"]) - timedelta(
                seconds=seconds
            )
            moved = {"type": "Ready", "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
            metadata = {"resourceVersion": pod["metadata"]["resourceVersion"]}
            path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "status")
            body = {"metadata": metadata, "status": {"conditions": [moved]}}
            await client.patch_object(path, body=body, content_type=STRATEGIC_MERGE_PATCH)

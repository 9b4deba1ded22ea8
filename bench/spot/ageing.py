"""Age objects when the clock jumps: move the times written on them as far into the past.

The controller judges by how long ago something was: when a host left the list, how often a worker was moved lately,
since when a pod has been Ready. Its own clock cannot jump, so what it compares that with is moved instead.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bench import jobs
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiWriter

# Seconds since the epoch; what is below is no time, or an unset one.
EARLIEST = 1e9


async def age(client: ApiWriter, namespace: str, *, seconds: float) -> bool:
    """Make all that is remembered so much older; False where somebody wrote meanwhile, so that nothing should jump.

    Raises as `ApiReader` does.
    """
    try:
        await _age_memory(client, namespace, seconds)
        listed = await client.get(PODS.path(namespace), query={"labelSelector": names.worker_selector(jobs.JOB)})
        await asyncio.gather(*(_age_pod(client, pod, seconds) for pod in msgspec.json.decode(listed)["items"]))
    except (errors.Conflict, errors.NotFound):
        return False
    return True


def older(memory: Any, *, seconds: float) -> Any:  # noqa: ANN401 - any JSON
    """The controller's memory with every time in it moved back: its fields `at` and `..._at`, at whatever depth."""
    if not isinstance(memory, dict):
        return memory
    return {
        key: value - seconds if _is_time(key, value) else older(value, seconds=seconds) for key, value in memory.items()
    }


def _is_time(key: str, value: object) -> bool:
    return (key == "at" or key.endswith("_at")) and isinstance(value, int | float) and value > EARLIEST


async def _age_memory(client: ApiWriter, namespace: str, seconds: float) -> None:
    path = CONFIG_MAPS.path(namespace, names.config_map(jobs.JOB))
    metadata = msgspec.json.decode(await client.get(path))["metadata"]
    text = metadata.get("annotations", {}).get(names.MEMORY)
    if text is None:
        return
    memory = msgspec.json.encode(older(msgspec.json.decode(text), seconds=seconds), order="sorted").decode()
    change = {"resourceVersion": metadata["resourceVersion"], "annotations": {names.MEMORY: memory}}
    await client.patch_object(path, body={"metadata": change}, content_type=MERGE_PATCH)


async def _age_pod(client: ApiWriter, pod: dict[str, Any], seconds: float) -> None:
    since = next((one["lastTransitionTime"] for one in pod["status"].get("conditions", ()) if _is_ready(one)), None)
    if since is None:
        return
    at = datetime.fromisoformat(since).astimezone(UTC) - timedelta(seconds=seconds)
    change = {
        "metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]},
        "status": {"conditions": [{"type": "Ready", "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}]},
    }
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "status")
    await client.patch_object(path, body=change, content_type=STRATEGIC_MERGE_PATCH)


def _is_ready(condition: dict[str, Any]) -> bool:
    return bool(condition["type"] == "Ready" and condition["status"] == "True")

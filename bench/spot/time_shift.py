"""Move times on objects into the past when the trace's clock jumps.

The controller decides by how long ago something was: when a host left the list, when a worker was moved, since when a
pod has been Ready. Its own clock cannot jump, so the times on objects move instead.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bench import jobs
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiWriter
from mpijob_elastic.model import memory_text
from mpijob_elastic.model.memory import Memory

# Seconds since the epoch. A smaller number is not a time, or an unset time.
EARLIEST = 1e9


async def shift(client: ApiWriter, namespace: str, *, seconds: float) -> bool:
    """Make all times on objects older by `seconds`; return False if another write came between, so nothing may jump.

    Raises as `ApiReader` does.
    """
    try:
        await _shift_memory(client, namespace, seconds)
        listed = await client.get(PODS.path(namespace), query={"labelSelector": names.worker_selector(jobs.JOB)})
        await asyncio.gather(*(_shift_pod(client, pod, seconds) for pod in msgspec.json.decode(listed)["items"]))
    except (errors.Conflict, errors.NotFound):
        return False
    return True


def shifted(json: Any, *, seconds: float) -> Any:
    """Return JSON with every time moved back: the fields `at` and `..._at` at any depth."""
    if not isinstance(json, dict):
        return json
    return {
        key: value - seconds if _is_time(key, value) else shifted(value, seconds=seconds) for key, value in json.items()
    }


def _is_time(key: str, value: object) -> bool:
    return (key == "at" or key.endswith("_at")) and isinstance(value, int | float) and value > EARLIEST


async def _shift_memory(client: ApiWriter, namespace: str, seconds: float) -> None:
    path = CONFIG_MAPS.path(namespace, names.config_map(jobs.JOB))
    metadata = msgspec.json.decode(await client.get(path))["metadata"]
    memory = memory_text.parse(metadata.get("annotations", {}).get(names.MEMORY))
    if memory is None:
        return
    moved = msgspec.convert(shifted(msgspec.to_builtins(memory), seconds=seconds), Memory)
    text = memory_text.render(moved)
    change = {"resourceVersion": metadata["resourceVersion"], "annotations": {names.MEMORY: text}}
    await client.patch_object(path, body={"metadata": change}, content_type=MERGE_PATCH)


async def _shift_pod(client: ApiWriter, pod: dict[str, Any], seconds: float) -> None:
    conditions = filter(_is_ready, pod["status"].get("conditions", ()))
    since = next((condition["lastTransitionTime"] for condition in conditions), None)
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

"""A side's job on the API server, with what model and replay need."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench import jobs
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS
from mpijob_elastic.kube.writer import ApiWriter

_PREFIX = "echo "


@dataclass(frozen=True, kw_only=True)
class World:
    """Pods and ConfigMap of the job.

    running: uid of each worker pod that runs on an existing machine, by pod name.
    pods: names of all pods. script, hostfile (its names): content of the ConfigMap.
    launcher: uid of the launcher pod, "" without launcher. started: True if it runs. touch: its annotations.
    """

    running: Mapping[str, str] = field(default_factory=dict)
    pods: Collection[str] = ()
    script: str = ""
    hostfile: tuple[str, ...] = ()
    launcher: str = ""
    started: bool = False
    touch: str = ""


async def look(client: ApiWriter, namespace: str, *, gone: Collection[str]) -> World:
    """Read the job; `gone` are the taken machines. Raises as `ApiReader` does."""
    # From the API server's cache: this costs next to nothing, and is a few milliseconds old.
    query = {"labelSelector": f"{names.LABEL_JOB_NAME}={jobs.JOB}", "resourceVersion": "0"}
    listed, data = await asyncio.gather(client.get(PODS.path(namespace), query=query), _config(client, namespace))
    pods = {pod["metadata"]["name"]: pod for pod in msgspec.json.decode(listed)["items"]}
    launcher = pods.get(names.launcher(jobs.JOB))
    workers = {name: pod for name, pod in pods.items() if pod is not launcher}
    return World(
        running={name: pod["metadata"]["uid"] for name, pod in workers.items() if _trains(pod, gone)},
        pods=frozenset(pods),
        script=data.get(names.KEY_DISCOVER_HOSTS, ""),
        hostfile=tuple(line.split()[0] for line in data.get(names.KEY_HOSTFILE, "").splitlines()),
        launcher=launcher["metadata"]["uid"] if launcher else "",
        started=launcher is not None and launcher["status"].get("phase") == "Running",
        touch=str(sorted(launcher["metadata"].get("annotations", {}).items())) if launcher else "",
    )


def hosts(script: str) -> tuple[str, ...]:
    """Return the hosts that a discover_hosts.sh prints, without slots."""
    lines = (line.removeprefix(_PREFIX) for line in script.splitlines() if line.startswith(_PREFIX))
    return tuple(line.rpartition(":")[0] for line in lines)


def _trains(pod: Mapping[str, Any], gone: Collection[str]) -> bool:
    there = "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName", "") not in gone
    return there and pod["status"].get("phase") == "Running"


async def _config(client: ApiWriter, namespace: str) -> Mapping[str, str]:
    try:
        found = msgspec.json.decode(await client.get(CONFIG_MAPS.path(namespace, names.config_map(jobs.JOB))))
    except errors.NotFound:
        return {}
    data: Mapping[str, str] = found.get("data", {})
    return data

"""A side's job on the API server, with what model and replay need."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

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
    pods: names of all pods. script, hostfile (its names), kubexec: content of the ConfigMap.
    launcher: uid of the launcher pod, "" without launcher. started: True if it runs. touch: its annotations.
    """

    running: Mapping[str, str] = field(default_factory=dict)
    pods: Collection[str] = ()
    script: str = ""
    hostfile: tuple[str, ...] = ()
    kubexec: str = ""
    launcher: str = ""
    started: bool = False
    touch: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status


class _Pods(msgspec.Struct):
    items: list[_Pod]


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def look(client: ApiWriter, namespace: str, *, gone: Collection[str]) -> World:
    """Read the job; `gone` are the taken machines. Raises as `ApiReader` does."""
    # From the API server's cache: this costs next to nothing, and is a few milliseconds old.
    query = {"labelSelector": f"{names.LABEL_JOB_NAME}={jobs.JOB}", "resourceVersion": "0"}
    pods, config = await asyncio.gather(client.get(PODS.path(namespace), query=query), _config(client, namespace))
    return seen(pods, config, gone=gone)


def seen(pods: bytes, config: bytes | None, *, gone: Collection[str]) -> World:
    """Return the world from a list of pods and the job's ConfigMap. Raises msgspec.DecodeError."""
    found = msgspec.json.decode(pods, type=_Pods).items
    data = msgspec.json.decode(config, type=_ConfigMap).data if config else {}
    launcher = next((pod for pod in found if pod.metadata.name == names.launcher(jobs.JOB)), None)
    return World(
        running={pod.metadata.name: pod.metadata.uid for pod in found if pod is not launcher and _trains(pod, gone)},
        pods=frozenset(pod.metadata.name for pod in found),
        script=data.get(names.KEY_DISCOVER_HOSTS, ""),
        hostfile=tuple(line.split()[0] for line in data.get(names.KEY_HOSTFILE, "").splitlines()),
        kubexec=data.get(names.KEY_KUBEXEC, ""),
        launcher=launcher.metadata.uid if launcher else "",
        started=launcher is not None and launcher.status.phase == "Running",
        touch=str(sorted(launcher.metadata.annotations.items())) if launcher else "",
    )


def hosts(script: str) -> tuple[str, ...]:
    """Return the hosts that a discover_hosts.sh prints, without slots."""
    lines = (line.removeprefix(_PREFIX) for line in script.splitlines() if line.startswith(_PREFIX))
    return tuple(line.rpartition(":")[0] for line in lines)


def _trains(pod: _Pod, gone: Collection[str]) -> bool:
    there = not pod.metadata.deletion_timestamp and pod.spec.node_name not in gone
    return there and pod.status.phase == "Running"


async def _config(client: ApiWriter, namespace: str) -> bytes | None:
    try:
        return await client.get(CONFIG_MAPS.path(namespace, names.config_map(jobs.JOB)))
    except errors.NotFound:
        return None

"""The history of a job's pods and host list, in the order in which the API server wrote it.

Two watches give the versions; resourceVersions of one etcd are one sequence over all kinds, which
the API does not promise, but the lab's etcd keeps.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class History:
    """Every version of the job's pods and ConfigMaps that was seen; gone: versions at which one was gone."""

    pods: list[Object] = field(default_factory=list)
    configs: list[Object] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def deleted_while_published(self) -> list[str]:
        """Pods whose deletion was asked for while discover_hosts.sh still named them."""
        return [
            _name(pod)
            for pod in self._first_deletions()
            if f"echo {_name(pod)}:" in self._script_at(_version(pod))
        ]

    def deleted(self) -> list[str]:
        """Pods whose deletion was asked for."""
        return [_name(pod) for pod in self._first_deletions()]

    def graces(self) -> list[int]:
        """Seconds that each pod was given to end when its deletion was asked for."""
        return [pod["metadata"]["deletionGracePeriodSeconds"] for pod in self._first_deletions()]

    def mixed_changes(self) -> list[tuple[str, str]]:
        """Pairs of consecutive scripts of which the second both adds and removes hosts."""
        scripts = [_script(config) for config in sorted(self.configs, key=_version)]
        return [
            (a, b)
            for a, b in itertools.pairwise(scripts)
            if _hosts(a) - _hosts(b) and _hosts(b) - _hosts(a)
        ]

    def _first_deletions(self) -> list[Object]:
        first: dict[str, Object] = {}
        for pod in sorted(self.pods, key=_version):
            if "deletionTimestamp" in pod["metadata"]:
                first.setdefault(pod["metadata"]["uid"], pod)
        return list(first.values())

    def _script_at(self, version: int) -> str:
        before = [config for config in self.configs if _version(config) < version]
        return _script(max(before, key=_version)) if before else ""


def most_requested(resource: str, *histories: History) -> int:
    """Return how much of a resource the pods that may be scheduled had, at the instant when it was most."""
    gone = set().union(*(history.gone for history in histories))
    now: dict[str, int] = {}
    most = 0
    for pod in sorted((pod for history in histories for pod in history.pods), key=_version):
        now[pod["metadata"]["uid"]] = 0 if _version(pod) in gone else requested(resource, pod)
        most = max(most, sum(now.values()))
    return most


def requested(resource: str, pod: Object) -> int:
    """Return how much of a resource a pod has or may be given."""
    if pod["status"]["phase"] in ("Succeeded", "Failed") or pod["spec"].get("schedulingGates"):
        return 0
    limits = [one.get("resources", {}).get("limits", {}) for one in pod["spec"]["containers"]]
    return sum(int(one.get(resource, 0)) for one in limits)


@asynccontextmanager
async def recorded(client: ApiWriter, namespace: str, *, job: str) -> AsyncIterator[History]:
    """Record while the block runs."""
    history = History()
    kinds = (
        (resources.PODS, "mpi-job-name", history.pods),
        (resources.CONFIG_MAPS, "app", history.configs),
    )
    async with AsyncExitStack() as watches:
        follow = []
        for resource, label, into in kinds:
            query = {"watch": "true", "labelSelector": f"{label}={job}"}
            # The block starts when the server has answered, else what it does first may be missed.
            lines = await watches.enter_async_context(
                client.stream(resource.path(namespace), query=query, silence=600)
            )
            follow.append(asyncio.create_task(_follow(lines, into, history.gone)))
        try:
            yield history
        finally:
            for task in follow:
                task.cancel()
            await asyncio.gather(*follow, return_exceptions=True)


async def _follow(lines: AsyncIterator[bytes], into: list[Object], gone: set[int]) -> None:
    async for line in lines:
        event = msgspec.json.decode(line)
        into.append(event["object"])
        if event["type"] == "DELETED":
            gone.add(_version(event["object"]))


def _name(item: Object) -> str:
    name: str = item["metadata"]["name"]
    return name


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


def _hosts(script: str) -> set[str]:
    """The lines of a script without the reminder, which is no host."""
    return {line for line in script.splitlines() if not line.endswith(":0")}


def _script(config: Object) -> str:
    script: str = config.get("data", {}).get("discover_hosts.sh", "")
    return script

"""Taking our traces off jobs when nothing of ours runs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install.changes import Say
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from upgrade import traces
from upgrade.refusal import ATTEMPTS
from upgrade.traces import Removal, Traces


@dataclass(frozen=True, kw_only=True)
class Left:
    """Our traces, and workers (namespace/name) beyond their job's size."""

    traces: Traces
    surplus: list[str]

    def lines(self) -> list[str]:
        """What stays and why, for people."""
        lines = [
            f"{job}: {names.KEY_DISCOVER_HOSTS} and its annotation stay in its ConfigMap while its launcher, which "
            "mounts it, lives; run this again when the job has ended, or delete the job"
            for job in self.traces.kept
        ]
        return lines + [
            f"pod {worker} is beyond the size of its job and no longer in the host list or about to leave it; it stays "
            "until the job is deleted"
            for worker in self.surplus
        ]


async def look(client: ApiWriter) -> Left:
    """Find them, in all namespaces. Raises `errors.KubeError`."""
    jobs = await list_objects(client, MPI_JOBS.path(), _object)
    pods = await list_objects(client, PODS.path(), _object, selector=names.POD_SELECTOR)
    configs = await list_objects(client, CONFIG_MAPS.path(), _object, selector=names.LABEL_APP)
    launchers = [pod for pod in pods if pod["metadata"]["labels"].get(names.LABEL_JOB_ROLE) == names.ROLE_LAUNCHER]
    return Left(
        traces=traces.find(jobs=jobs, config_maps=configs, launchers=launchers),
        surplus=traces.surplus(jobs=jobs, pods=pods),
    )


async def sweep(client: ApiWriter, *, say: Say) -> None:
    """Take them off, and say what stays. Raises `errors.KubeError`."""
    for _ in range(ATTEMPTS):
        left = await look(client)
        removed = [await _remove(client, removal, say=say) for removal in left.traces.removals]
        if all(removed):
            break
    for line in left.lines():
        say(line)


async def _remove(client: ApiWriter, removal: Removal, *, say: Say) -> bool:
    """Whether nothing of it is there any more, as far as we know."""
    try:
        await client.patch_object(removal.path, body=list(removal.patch), content_type=JSON_PATCH)
    except errors.NotFound:
        return True
    except (errors.Conflict, errors.Invalid):
        return False  # somebody changed just this, or made another object of that name: look again
    say(f"removed from {removal}")
    return True


def _object(raw: bytes) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(raw)
    return decoded

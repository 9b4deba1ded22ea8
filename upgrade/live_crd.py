"""The live MPIJob definition: read, and changed only where it still is what was looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mpijob_elastic.install import changes, rollout
from mpijob_elastic.install.changes import Change, Say
from mpijob_elastic.install.objects import identity
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from upgrade import crd_form, json_patch
from upgrade.refusal import ATTEMPTS, Refused, contended

PATH = CUSTOM_RESOURCE_DEFINITIONS.path(name=crd_form.NAME)

Object = dict[str, Any]
# From the live definition to the one that is wanted.
Wanted = Callable[[Mapping[str, Any]], Object]


async def read(client: ApiWriter) -> Object:
    """The definition. Raises `Refused` where there is none, and `errors.KubeError`."""
    try:
        return _decode(await client.get(PATH))
    except errors.NotFound:
        raise Refused(
            f"there is no CustomResourceDefinition {crd_form.NAME}: install mpi-operator v0.2.3 and its definition"
        ) from None


async def change(client: ApiWriter, wanted: Wanted, *, dry_run: bool = False) -> Change:
    """Make the definition what `wanted` says; dry_run: the API server checks it and keeps nothing.

    Raises `Refused` and `errors.KubeError`.
    """
    for _ in range(ATTEMPTS):
        live = await read(client)
        patch = json_patch.guarded(live, wanted(live))
        if not patch:
            return changes.changed(identity(live), live, live)
        try:
            return changes.changed(identity(live), live, await _write(client, patch, dry_run=dry_run))
        except (errors.Invalid, errors.Conflict) as error:
            if (await read(client))["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]:
                raise Refused(f"the API server does not accept the change of {crd_form.NAME}: {error}") from error
            # Somebody else was faster: look again.
            await asyncio.sleep(0.1)
    raise contended(crd_form.NAME)


async def wait_for_scale(client: ApiWriter, *, seconds: float, say: Say) -> None:
    """Wait until the API server serves the subresource. Raises `Refused` and `errors.KubeError`."""
    path = f"/apis/{MPI_JOBS.api_version}"

    async def missing() -> str:
        served = _decode(await client.get(path))["resources"]
        there = any(one["name"] == f"{MPI_JOBS.plural}/scale" for one in served)
        return "" if there else f"{MPI_JOBS.plural}/scale is not served yet"

    if late := await rollout.until(missing, seconds=seconds, say=say):
        raise Refused(f"after {seconds:.0f} s {late}; the API server's log says why. Run the same command again")


async def _write(client: ApiWriter, patch: json_patch.Patch, *, dry_run: bool) -> Object:
    query = {"dryRun": "All"} if dry_run else None
    return _decode(await client.patch_object(PATH, query=query, body=list(patch), content_type=JSON_PATCH))


def _decode(body: bytes) -> Object:
    decoded: Object = msgspec.json.decode(body)
    return decoded

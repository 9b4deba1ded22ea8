"""Read the live MPIJob definition, and change it only if it is still the version that was read."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from mpijob_elastic.install import ATTEMPTS, Refused, contended, objects, rollout
from mpijob_elastic.install.objects import Change, Say, identity
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from upgrade import crd

PATH = CUSTOM_RESOURCE_DEFINITIONS.path(name=crd.NAME)

Object = dict[str, Any]
# From the live definition to the wanted definition.
Wanted = Callable[[Mapping[str, Any]], Object]


async def read(client: ApiReader) -> Object:
    """Return the definition. Raises `Refused` if there is none, and `errors.KubeError`."""
    body = await client.find(PATH)
    if body is None:
        raise Refused(
            f"there is no CustomResourceDefinition {crd.NAME}: install mpi-operator v0.2.3 and its definition"
        )
    return objects.read(body)


async def change(client: ApiWriter, wanted: Wanted, *, dry_run: bool = False) -> Change:
    """Turn the definition into what `wanted` returns; dry_run: the API server checks it and stores nothing."""
    query = {"dryRun": "All"} if dry_run else None
    for _ in range(ATTEMPTS):
        live = await read(client)
        after = wanted(live)
        if after == live:
            return objects.changed(identity(live), live, live)
        # The API server refuses an old version with a conflict, as in an update.
        version = live["metadata"]["resourceVersion"]
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        spec = {"op": "replace", "path": "/spec", "value": after["spec"]}
        try:
            body = await client.patch_object(PATH, query=query, body=[guard, spec], content_type=JSON_PATCH)
        except errors.Conflict:
            # Somebody else was faster: look again.
            await asyncio.sleep(0.1)
        except errors.Invalid as error:
            raise Refused(f"the API server does not accept the change of {crd.NAME}: {error}") from error
        else:
            return objects.changed(identity(live), live, objects.read(body))
    raise contended(crd.NAME)


async def wait_for_scale(client: ApiReader, *, seconds: float, say: Say) -> None:
    """Wait until the API server serves the scale subresource. Raises `Refused` and `errors.KubeError`."""

    async def missing() -> str:
        served = objects.read(await client.get(f"/apis/{MPI_JOBS.api_version}"))["resources"]
        there = any(one["name"] == f"{MPI_JOBS.plural}/scale" for one in served)
        return "" if there else f"{MPI_JOBS.plural}/scale is not served yet"

    advice = "the API server's log says why. Run the same command again"
    await rollout.wait(missing, seconds=seconds, say=say, advice=advice)

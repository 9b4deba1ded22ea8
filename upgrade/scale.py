"""The scale subresource: `install` offers it, `uninstall` takes it back.

The definition before is recorded in a Secret beside the installation. The live definition is
changed only if it still is the version that was read.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import ATTEMPTS, Refused, objects, rollout
from mpijob_elastic.install.objects import ObjectChange, Say, identity
from mpijob_elastic.install.server import check_rights
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS, NAMESPACES, SECRETS
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from upgrade import crd, record

DEFINITION = CUSTOM_RESOURCE_DEFINITIONS.path(name=crd.NAME)

# In place of a field manager without a name: the API server calls it unknown.
_ANONYMOUS = "somebody (field manager unknown)"
Object = dict[str, Any]
# From the live definition to the wanted definition.
Wanted = Callable[[Mapping[str, Any]], Object]


async def read_definition(client: ApiReader) -> Object:
    """Return the definition. Raises `Refused` if there is none, and `errors.KubeError`."""
    body = await client.find(DEFINITION)
    if body is None:
        raise Refused(
            f"there is no CustomResourceDefinition {crd.NAME}: install "
            "mpi-operator v0.2.3 and its definition"
        )
    return objects.read(body)


async def change_definition(
    client: ApiWriter, wanted: Wanted, *, dry_run: bool = False
) -> ObjectChange:
    """Turn the definition into what `wanted` returns.

    dry_run: the API server checks the definition and stores nothing.
    """
    query = {"dryRun": "All"} if dry_run else None
    for _ in range(ATTEMPTS):
        live = await read_definition(client)
        after = wanted(live)
        if after == live:
            return objects.changed(identity(live), live, live)
        # The API server refuses an old version with a conflict, as in an update.
        version = live["metadata"]["resourceVersion"]
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        spec = {"op": "replace", "path": "/spec", "value": after["spec"]}
        try:
            body = await client.patch_object(
                DEFINITION, query=query, body=[guard, spec], content_type=JSON_PATCH
            )
        except errors.Conflict:
            # Somebody else was faster: look again.
            await asyncio.sleep(0.1)
        except errors.Invalid as error:
            raise Refused(
                f"the API server does not accept the change of {crd.NAME}: {error}"
            ) from error
        else:
            return objects.changed(identity(live), live, objects.read(body))
    raise Refused(
        f"{crd.NAME} was changed by somebody else {ATTEMPTS} times in a row; "
        "find out who, and run this again"
    )


# kubectl keeps it for 6 h (cli-runtime: pkg/genericclioptions/config_flags.go).
CACHED = (
    "Note: kubectl remembers for hours what the API server served before. Type "
    "`kubectl api-resources > /dev/null` before the first `kubectl scale` or `kubectl autoscale`"
)


async def offer(client: ApiWriter, *, dry_run: bool, seconds: float, say: Say) -> str:
    """Make MPIJobs scalable; return, in words, what may undo that, "" if nothing is known.

    Waits at most `seconds` until the subresource is served. Raises `Refused` and
    `errors.KubeError`.
    """
    live = await read_definition(client)
    if crd.is_current(live):
        say(objects.changed(identity(live), live, live))
        return ""
    await check(client)
    trial = await change_definition(client, crd.upgraded, dry_run=True)
    if dry_run:
        say(trial)
    else:
        await _record(client)
        say(await change_definition(client, crd.upgraded))

        async def missing() -> str:
            served = objects.read(await client.get(f"/apis/{MPI_JOBS.api_version}"))["resources"]
            there = any(one["name"] == f"{MPI_JOBS.plural}/scale" for one in served)
            return "" if there else f"{MPI_JOBS.plural}/scale is not served yet"

        advice = "the API server's log says why. Run the same command again"
        await rollout.wait(missing, seconds=seconds, say=say, advice=advice)
    notes = [] if dry_run else [CACHED]
    if writers := crd.writers(live):
        notes.append(_taken_away(writers))
    return "\n".join(notes)


def _taken_away(writers: Iterable[str]) -> str:
    who = ", ".join(_ANONYMOUS if writer == "unknown" else writer for writer in writers)
    return (
        f"Note: {who} wrote the definition of MPIJobs before. The same manifest, "
        "applied again, takes `kubectl scale` away, so add the subresource to it (docs/scale.md)"
    )


async def is_recorded(client: ApiReader) -> bool:
    """Return True if there is something to take back.

    Raises `Refused` if it cannot be, and `errors.KubeError`.
    """
    if await record.read(client) is None:
        return False
    await check(client)
    return True


async def take_back(client: ApiWriter, *, dry_run: bool, say: Say) -> None:
    """Remove what `offer` added, unless somebody else's manifest has it since.

    Raises as `is_recorded` does.
    """
    before = await record.read(client)
    if before is None:
        return
    if await client.find(DEFINITION) is not None:
        former = partial(crd.reverted, before=before)
        say(await change_definition(client, former, dry_run=dry_run))
    if not dry_run:
        await record.delete(client)


async def left_out(client: ApiReader, why: str) -> str:
    """Return what does not work, why, and the command that mends it.

    It is "" if the definition is scalable anyway.
    """
    try:
        if crd.is_scalable(await read_definition(client)):
            return ""
    except (Refused, errors.ApiError):
        pass  # a definition that cannot be read or changed is not scalable for us
    said = f"Left out: `kubectl scale` and HPAs of MPIJobs do not work, because {why}."
    return f"{said}\nTo add this, type: {names.PROGRAM} upgrade scale"


async def check(client: ApiReader) -> None:
    """Raise `Refused` if this account lacks a right to change the definition or to record it."""
    changes = [(CUSTOM_RESOURCE_DEFINITIONS, "", verb) for verb in ("get", "patch")]
    await check_rights(client, changes, name=crd.NAME)
    for name in record.NAMES:
        await check_rights(
            client, [(SECRETS, names.NAMESPACE, verb) for verb in ("get", "delete")], name=name
        )
    await check_rights(client, [(SECRETS, names.NAMESPACE, "create")])


async def _record(client: ApiWriter) -> None:
    if await client.find(NAMESPACES.path(name=names.NAMESPACE)) is None:
        raise Refused(
            f"there is no namespace {names.NAMESPACE} in which to record the former definition; "
            f"run `{names.PROGRAM} install` first"
        )
    await record.keep(client, await read_definition(client))

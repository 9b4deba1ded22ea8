"""The scale subresource: `install` offers it, `uninstall` takes it back.

The definition before is recorded in a Secret beside the installation.
"""

from functools import partial

from mpijob_elastic import names
from mpijob_elastic.install import Refused, objects
from mpijob_elastic.install.objects import Say, identity
from mpijob_elastic.install.preflight import Right, check_rights
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import crd, live_crd, owners, record

COMMAND = f"{names.PROGRAM} upgrade scale"
_ON_DEFINITION: tuple[Right, ...] = tuple((CUSTOM_RESOURCE_DEFINITIONS, "", verb) for verb in ("get", "patch"))
_ON_RECORD: tuple[Right, ...] = tuple((SECRETS, names.NAMESPACE, verb) for verb in ("get", "delete"))
_TO_RECORD: tuple[Right, ...] = ((SECRETS, names.NAMESPACE, "create"),)


async def offer(client: ApiWriter, *, dry_run: bool, seconds: float, say: Say) -> str:
    """Make MPIJobs scalable; return what may undo that, in words, "" if nothing is known.

    Waits at most `seconds` until the subresource is served. Raises `Refused` and `errors.KubeError`.
    """
    live = await live_crd.read(client)
    if crd.is_scalable(live):
        say(objects.changed(identity(live), live, live))
        return ""
    await check(client)
    trial = await live_crd.change(client, crd.upgraded, dry_run=True)
    if dry_run:
        say(trial)
    else:
        await _record(client)
        say(await live_crd.change(client, crd.upgraded))
        await live_crd.wait_for_scale(client, seconds=seconds, say=say)
    return _undone_by(owners.writers(live))


async def is_recorded(client: ApiReader) -> bool:
    """Return True if there is something to take back. Raises `Refused` if it cannot be, and `errors.KubeError`."""
    if await record.read(client) is None:
        return False
    await check(client)
    return True


async def take_back(client: ApiWriter, *, dry_run: bool, say: Say) -> None:
    """Remove what `offer` added, unless somebody else's manifest has it since. Raises as `is_recorded` does."""
    before = await record.read(client)
    if before is None:
        return
    if await client.find(live_crd.PATH) is not None:
        former = partial(crd.reverted, before=before)
        say(await live_crd.change(client, former, dry_run=dry_run))
    if not dry_run:
        await record.delete(client)


async def left_out(client: ApiReader, why: str) -> str:
    """Return what does not work, why, and the command that mends it; "" if the definition is scalable anyway."""
    try:
        if crd.is_scalable(await live_crd.read(client)):
            return ""
    except (Refused, errors.ApiError):
        pass  # a definition that cannot be read or changed is not scalable for us
    return f"Left out: `kubectl scale` and HPAs of MPIJobs do not work, because {why}.\nTo add this, type: {COMMAND}"


async def check(client: ApiReader) -> None:
    """Raise `Refused` if this account lacks a right to change the definition or to record it."""
    await check_rights(client, _ON_DEFINITION, name=crd.NAME)
    for name in record.NAMES:
        await check_rights(client, _ON_RECORD, name=name)
    await check_rights(client, _TO_RECORD)


async def _record(client: ApiWriter) -> None:
    if await client.find(NAMESPACES.path(name=names.NAMESPACE)) is None:
        raise Refused(
            f"there is no namespace {names.NAMESPACE} in which to record the definition before; run "
            f"`{names.PROGRAM} install` first"
        )
    await record.keep(client, await live_crd.read(client))


def _undone_by(writers: list[str]) -> str:
    if not writers:
        return ""
    return (
        f"Note: {', '.join(writers)} wrote the definition of MPIJobs before. The same manifest, applied again, takes "
        "`kubectl scale` away, so add the subresource to it (docs/scale.md)"
    )

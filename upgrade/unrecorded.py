"""A rollback where nothing is recorded (any more): only what was left over is cleared up."""

from __future__ import annotations

from collections.abc import Callable

from mpijob_elastic import names
from mpijob_elastic.install import inventory, rollout, server
from mpijob_elastic.install.changes import Say
from mpijob_elastic.install.objects import identity
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import cleanup, store
from upgrade.refusal import Refused

Ask = Callable[[], bool]


async def clear(client: ApiWriter, *, ask: Ask, dry_run: bool, timeout: float, say: Say) -> bool:  # noqa: ASYNC109
    """Take our traces off jobs where nothing of ours is installed; whether that was confirmed.

    Raises `Refused` where something is, and `errors.KubeError`.
    """
    if not dry_run:
        await _finish(client, seconds=timeout, say=say)
    await _check(client)
    left = await cleanup.look(client)
    say("there is no upgrade to take back")
    for line in [f"left on jobs: {one}" for one in left.traces.removals] + left.lines():
        say(line)
    if not left.traces.removals or dry_run:
        return True
    if not ask():
        return False
    await cleanup.sweep(client, say=say)
    return True


async def _finish(client: ApiWriter, *, seconds: float, say: Say) -> None:
    """A namespace that ends takes the record with it; one that is empty was made to keep one, and then nothing more."""
    if await store.is_namespace_ending(client):
        if late := await rollout.until(lambda: _still_ending(client), seconds=seconds, say=say):
            raise Refused(f"after {seconds:.0f} s {late}; `kubectl describe` says why. Run the same command again")
    elif await store.created_namespace(client) and len(await _found(client)) == 1:
        await store.delete_namespace(client)


async def _check(client: ApiWriter) -> None:
    found = await _found(client)
    if await store.created_namespace(client):
        found = [one for one in found if one.identity.kind != NAMESPACES.kind]
    if found:
        raise Refused(
            f"there is no record of an upgrade, and {found[0].identity} is there; what `mpijob-elastic install` made, "
            "`mpijob-elastic uninstall` takes away"
        )


async def _found(client: ApiWriter) -> list[inventory.Found]:
    known = inventory.manifests()
    keys = [inventory.key(identity(one)) for one in known]
    return await inventory.find(client, await server.examine(client, known), keys)


async def _still_ending(client: ApiWriter) -> str:
    return f"namespace {names.NAMESPACE} is still ending" if await store.has_namespace(client) else ""

"""Remove our traces from jobs, once nothing of ours runs any more."""

from mpijob_elastic import names
from mpijob_elastic.install import inventory, removal
from mpijob_elastic.install.changes import Ask, Say
from mpijob_elastic.install.refusal import ATTEMPTS, Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from upgrade import jobs, namespaces, traces
from upgrade.traces import Removal, Traces


async def look(client: ApiReader) -> Traces:
    """Find our traces in all namespaces. Raises `errors.KubeError`."""
    found, configs, pods = await jobs.read_all(client)
    return traces.find(jobs=found, configs=configs, pods=pods)


async def sweep(client: ApiWriter, *, say: Say) -> None:
    """Remove our traces, and say what stays. Raises `errors.KubeError`."""
    for _ in range(ATTEMPTS):
        left = await look(client)
        removed = [await _remove(client, trace, say=say) for trace in left.removals]
        if all(removed):
            break
    for line in left.lines():
        say(line)


async def without_record(client: ApiWriter, *, ask: Ask, dry_run: bool, timeout: float, say: Say) -> bool:  # noqa: ASYNC109
    """Roll back without a record: remove our traces if nothing of ours is installed.

    Returns False if the user declined. Raises `Refused`, for example if something is installed, and `errors.KubeError`.
    """
    if not dry_run:
        await _finish_namespace(client, seconds=timeout, say=say)
    await _check_nothing_installed(client)
    left = await look(client)
    say("there is no upgrade to take back")
    for line in [f"left on jobs: {trace}" for trace in left.removals] + left.lines():
        say(line)
    if not left.removals or dry_run:
        return True
    if not ask():
        return False
    await sweep(client, say=say)
    return True


async def _finish_namespace(client: ApiWriter, *, seconds: float, say: Say) -> None:
    """Finish with a namespace that is ending, or that was created for a record and holds nothing."""
    namespace = await namespaces.find(client, names.NAMESPACE)
    if namespace is None:
        return
    if namespace.deleting:
        await removal.wait_for_namespace(client, seconds=seconds, say=say)
        return
    _, found = await inventory.look(client)
    if namespaces.CREATED in namespace.annotations and len(found) == 1:
        await namespaces.delete(client, names.NAMESPACE)


async def _check_nothing_installed(client: ApiReader) -> None:
    _, found = await inventory.look(client)
    if await namespaces.created(client, names.NAMESPACE, namespaces.FOR_RECORD):
        found = [one for one in found if one.identity.kind != NAMESPACES.kind]
    if found:
        raise Refused(
            f"there is no record of an upgrade, but {found[0].identity} exists; what `mpijob-elastic install` created, "
            "`mpijob-elastic uninstall` removes"
        )


async def _remove(client: ApiWriter, trace: Removal, *, say: Say) -> bool:
    """Remove a trace; return False to look at the objects again."""
    try:
        await client.patch_object(trace.path, body=trace.patch, content_type=JSON_PATCH)
    except errors.NotFound:
        return True
    except (errors.Conflict, errors.Invalid):
        return False  # somebody changed exactly this, or created another object of that name
    say(f"removed from {trace}")
    return True

"""`mpijob-elastic install` and `mpijob-elastic uninstall`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import change_commands as common
from mpijob_elastic.cli.options import Context, Kubeconfig
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.telemetry import terminal

if TYPE_CHECKING:
    from mpijob_elastic.install.changes import Say
    from mpijob_elastic.kube.writer import ApiWriter


def install(
    *,
    overlay: common.Overlays = None,
    jobs_namespace: common.JobsNamespaces = None,
    uncover: common.Uncover = False,
    image: common.Image = None,
    scale: common.Scale = True,
    dry_run: common.DryRun = False,
    print_manifests: Annotated[bool, typer.Option("--print", help="Print the manifests; ask no API server.")] = False,
    force_conflicts: common.ForceConflicts = False,
    wait: common.Wait = True,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Install controller and webhook, or bring them up to date. It can be repeated and interrupted at any time.

    The webhook is registered last, when it is ready, so it never delays the creation of a pod. Then the definition of
    MPIJobs gets the scale subresource, so that `kubectl scale` and HPAs work. If that cannot be, the command says why.

    For example:

    - `mpijob-elastic install --image REPOSITORY/mpijob-elastic:0.2.0`: for all namespaces

    - `mpijob-elastic install --overlay cert-manager --overlay prometheus --dry-run`: show what would change

    - `mpijob-elastic install --jobs-namespace team-a --jobs-namespace team-b`: for these namespaces only

    - `mpijob-elastic install --no-scale`: leave the definition of MPIJobs as it is

    Exit codes: 0 done; 1 refused (no rights, a conflict); 2 wrong usage; 4 not ready in time, or no answer of the API
    server; 130 Ctrl-C.
    """
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client

    wanted = common.plan(overlay, image, jobs_namespace)
    if print_manifests:
        if not image:
            raise typer.BadParameter("no API server is asked for the image that runs: name one", param_hint="--image")
        import yaml  # noqa: PLC0415 - --help need not load it

        terminal.say(*yaml.safe_dump_all(wanted.manifests(), sort_keys=False).splitlines())
        return
    options = installer.Options(dry_run=dry_run, force=force_conflicts, uncover=uncover, wait=wait, timeout=timeout)
    say = partial(common.tell, prefix="waiting: ", differences=dry_run)

    async def work(client: ApiWriter) -> None:
        await installer.install(client, wanted, options, say=say)
        note = await _offer_scale(client, asked=scale, dry_run=dry_run, seconds=timeout, say=say)
        common.end(confirmed=True, dry_run=dry_run, done="Installed.")
        terminal.say(*note.splitlines(), *await _too_old_for(client))

    common.run(work, kubeconfig, context)


def uninstall(
    *,
    scale: common.Scale = True,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Remove controller, webhook and everything else that `install` created. Jobs stay and keep running.

    The scale subresource that `install` added goes too; `--no-scale` leaves it. After `upgrade apply`, use
    `upgrade rollback` instead, which knows the state before.

    For example:

    - `mpijob-elastic uninstall --dry-run`: show what would be deleted

    - `mpijob-elastic uninstall --yes`: without confirmation

    Exit codes: 0 done; 1 refused (not confirmed, no rights); 2 wrong usage; 4 not gone in time, or no answer of the API
    server; 130 Ctrl-C.
    """
    from mpijob_elastic.install import removal  # noqa: PLC0415 - --help need not load the client
    from upgrade import scale as subresource  # noqa: PLC0415

    say = partial(common.tell, prefix="waiting: ", differences=dry_run)

    async def work(client: ApiWriter) -> None:
        await _check_no_record(client)
        server, found = await removal.prepare(client)
        takes_scale = scale and await _can_take_scale(client)
        if not found and not takes_scale:
            terminal.say("Nothing is installed.")
            return
        if dry_run or not yes:
            terminal.say("To be deleted, with everything in the namespace:")
            terminal.say(*(f"  {one.identity}" for one in found))
            if takes_scale:
                terminal.say("To become what it was:")
                await subresource.take_back(client, dry_run=True, say=say)
        terminal.say(*removal.STAYS.splitlines())
        if not dry_run:
            if not yes:
                typer.confirm(f"Delete this from {client.host}?", abort=True)
            await removal.stop(client, server, found, seconds=timeout, say=say)
            if takes_scale:
                await subresource.take_back(client, dry_run=False, say=say)
            await removal.clear(client, server, found, seconds=timeout, say=say)
            terminal.say("Uninstalled.")

    common.run(work, kubeconfig, context)


async def _offer_scale(client: ApiWriter, *, asked: bool, dry_run: bool, seconds: float, say: Say) -> str:
    """Offer the subresource if asked; return what the user must know at the end. It never fails an installation."""
    from upgrade import scale  # noqa: PLC0415 - --help need not load the client

    if not asked:
        return await scale.left_out(client, "--no-scale was given")
    try:
        return await scale.offer(client, dry_run=dry_run, seconds=seconds, say=say)
    except (Refused, errors.Forbidden) as error:
        return await scale.left_out(client, str(error))


async def _too_old_for(client: ApiWriter) -> list[str]:
    """Return what this API server is too old for, and what follows; nothing if it serves everything."""
    from mpijob_elastic.install import server  # noqa: PLC0415 - --help need not load the client
    from upgrade import findings  # noqa: PLC0415

    found = await server.examine(client, ())
    judged = findings.kubernetes(found.version, found.minor)
    if judged.verdict is findings.Verdict.GO:
        return []
    return [f"Left out: {judged.text}.", "Run this command again when the cluster has been upgraded."]


async def _can_take_scale(client: ApiWriter) -> bool:
    from upgrade import scale  # noqa: PLC0415 - --help need not load the client

    try:
        recorded = await scale.is_recorded(client)
        # Whatever can fail fails before anything is deleted.
        await scale.take_back(client, dry_run=True, say=lambda _: None)
    except Refused as error:
        raise Refused(f"{error}; or leave the definition of MPIJobs as it is: --no-scale") from error
    return recorded


async def _check_no_record(client: ApiWriter) -> None:
    from upgrade import record  # noqa: PLC0415 - --help need not load the client

    try:
        kept = await record.read(client)
    except Refused:
        return  # damaged, so it is no way back
    if kept is not None:
        raise Refused(
            f"this was installed by `mpijob-elastic upgrade apply`, and the state before is recorded in Secret "
            f"{names.NAMESPACE}/{record.NAME}, which would go too; use `mpijob-elastic upgrade rollback` instead"
        )

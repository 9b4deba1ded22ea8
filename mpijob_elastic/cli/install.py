"""`mpijob-elastic install` and `mpijob-elastic uninstall`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import change_commands as common
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Kubeconfig
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.telemetry import terminal

if TYPE_CHECKING:
    from mpijob_elastic.install.objects import Say
    from mpijob_elastic.kube.writer import ApiWriter
    from upgrade.uninstall import Uninstallation


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
    canary: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE",
            help="Verify the installation with a job in this namespace; both are removed unless they were there.",
        ),
    ] = None,
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

    - `mpijob-elastic install --canary canary`: verify with a job that scaling works

    Exit codes: 0 done; 1 refused (no rights, a conflict); 2 wrong usage; 4 not ready in time (the canary included), or
    no answer of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client
    from upgrade import canary as trial  # noqa: PLC0415

    wanted = common.plan(overlay, image, jobs_namespace)
    if canary and canary not in (wanted.jobs_namespaces or (canary,)):
        raise typer.BadParameter(
            f"name a namespace of --jobs-namespace: jobs in {canary} are not managed", param_hint="--canary"
        )
    if print_manifests:
        if not image:
            raise typer.BadParameter("no API server is asked for the image that runs: name one", param_hint="--image")
        import yaml  # noqa: PLC0415 - --help need not load it

        terminal.say(*yaml.safe_dump_all(wanted.manifests(), sort_keys=False).splitlines())
        return
    options = installer.Options(dry_run=dry_run, force=force_conflicts, uncover=uncover, wait=wait, timeout=timeout)
    say = partial(common.tell, prefix="waiting: ", differences=dry_run)

    async def work(client: ApiWriter) -> None:
        plan = await installer.with_image(client, wanted)
        if canary:
            await trial.check(client)
        await installer.install(client, plan, options, say=say)
        note = await _offer_scale(client, asked=scale, dry_run=dry_run, seconds=timeout, say=say)
        if canary and plan.image and not dry_run:
            await trial.run(client, canary, image=plan.image, seconds=timeout, say=common.tell)
        common.end(dry_run=dry_run, done="Installed.")
        terminal.say(*note.splitlines(), *await _too_old_for(client))

    common.run(work, kubeconfig, context)


def uninstall(
    *,
    scale: common.Scale = True,
    traces: Annotated[
        bool, typer.Option("--traces", help="Remove our annotations and keys from the objects of all jobs, too.")
    ] = False,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Remove controller, webhook and everything else that `install` created. Jobs stay and keep running.

    The scale subresource that `install` added goes too; `--no-scale` leaves it.

    For example:

    - `mpijob-elastic uninstall --dry-run`: show what would be deleted

    - `mpijob-elastic uninstall --traces`: leave nothing of ours on jobs. What a live launcher mounts stays; type this
      again when its job has ended

    - `mpijob-elastic uninstall --yes`: without confirmation

    Quota of a queued job of which nothing runs is given back. Type this again when other jobs have ended.

    Exit codes: 0 done; 1 refused (not confirmed, no rights); 2 wrong usage; 3 done, but something is left to do, which
    the output says; 4 not gone in time, or no answer of the API server; 130 Ctrl-C.
    """
    from upgrade.uninstall import Uninstallation  # noqa: PLC0415 - --help need not load the client

    say = partial(common.tell, differences=dry_run)

    async def work(client: ApiWriter) -> None:
        planned = await Uninstallation.prepare(client, takes_scale=scale, takes_traces=traces)
        if planned.is_empty:
            terminal.say("Nothing is installed.", *(planned.traces.lines() if planned.traces else ()))
            terminal.say(*planned.quota.lines())
            return
        if dry_run or not yes:
            await _announce(planned, say)
        terminal.say(*planned.stays())
        if not dry_run:
            if not yes:
                typer.confirm(f"Delete this from {client.host}?", abort=True)
            left = await planned.run(seconds=timeout, say=say)
            terminal.say("Uninstalled.", *left)
            if left:
                raise typer.Exit(Exit.OTHERWISE)

    common.run(work, kubeconfig, context)


async def _announce(planned: Uninstallation, say: Say) -> None:
    """Say what would be removed."""
    from upgrade import scale  # noqa: PLC0415 - --help need not load the client

    if planned.found:
        terminal.say("To be deleted, with everything in the namespace:")
        terminal.say(*(f"  {one.identity}" for one in planned.found))
    if planned.takes_scale:
        terminal.say("To become what it was:")
        await scale.take_back(planned.client, dry_run=True, say=say)
    if planned.traces and planned.traces.removals:
        terminal.say("To be removed from jobs:", *(f"  {trace}" for trace in planned.traces.removals))


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
    if judged.verdict is findings.Advice.GO:
        return []
    return [f"Left out: {judged.text}.", "Run this command again when the cluster has been upgraded."]

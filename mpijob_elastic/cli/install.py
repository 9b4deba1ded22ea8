"""`mpijob-elastic install` and `mpijob-elastic uninstall`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli.options import Context, Kubeconfig
from mpijob_elastic.install.changes import Change, Outcome
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay

if TYPE_CHECKING:
    from mpijob_elastic.install.inventory import Found
    from mpijob_elastic.kube.writer import ApiWriter

INTERRUPTED = 130  # what a shell says of a program that Ctrl-C ended
_COLOURS = {Outcome.CREATED: "green", Outcome.CONFIGURED: "yellow", Outcome.DELETED: "red"}

Timeout = Annotated[float, typer.Option(min=1, help="Seconds to wait for each step.")]


def install(
    *,
    overlay: Annotated[list[Overlay] | None, typer.Option(help="May be given several times.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Whose jobs to look after, with --overlay single-namespace.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Image to run; by default the one of the manifests.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; nothing is written.")] = False,
    print_manifests: Annotated[bool, typer.Option("--print", help="Print the manifests; ask no API server.")] = False,
    force_conflicts: Annotated[
        bool, typer.Option("--force-conflicts", help="Overrule fields that somebody else has changed.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until all replicas are ready and trusted.")] = True,
    timeout: Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Install controller and webhook, or bring them up to date; can be repeated and interrupted at any time.

    The webhook is registered last, when it is ready: no pod's creation ever waits for it before.

    For example:

    - `mpijob-elastic install --image REPOSITORY/mpijob-elastic:0.1.0`: for all namespaces

    - `mpijob-elastic install --overlay cert-manager --overlay prometheus --dry-run`: what would change

    - `mpijob-elastic install --overlay single-namespace -n team-a`: for one namespace only

    Exit codes: 0 done; 1 not (no rights, a conflict, not ready in time); 2 wrong usage; 130 interrupted.
    """
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client

    try:
        plan = installer.Plan(overlays=tuple(overlay or ()), image=image, jobs_namespace=namespace)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--namespace") from None
    if print_manifests:
        _print(plan.manifests())
        return
    options = installer.Options(dry_run=dry_run, force=force_conflicts, wait=wait, timeout=timeout)
    say = partial(_say, differences=dry_run)
    _run(lambda client: installer.install(client, plan, options, say=say), kubeconfig, context)
    typer.echo("Dry run: nothing was written." if dry_run else "Installed.")


def uninstall(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; nothing is.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    timeout: Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Remove controller, webhook and everything else that `install` made; jobs are left alone and keep running.

    What `upgrade apply` made is taken back by `upgrade rollback` instead, which knows the state before.

    For example:

    - `mpijob-elastic uninstall --dry-run`: what would be deleted

    - `mpijob-elastic uninstall --yes`: without asking

    Exit codes: 0 done; 1 not (not confirmed, no rights, not gone in time); 2 wrong usage; 130 interrupted.
    """
    from mpijob_elastic.install import removal  # noqa: PLC0415 - --help need not load the client

    async def work(client: ApiWriter) -> None:
        await _check_no_record(client)
        prepared = await removal.Removal.prepare(client)
        if not prepared.found:
            typer.echo("Nothing is installed.")
            return
        if dry_run or not yes:
            typer.echo("\n".join(["To be deleted, with everything in the namespace:", *map(_line, prepared.found)]))
        typer.echo(removal.STAYS)
        if not dry_run:
            if not yes:
                typer.confirm(f"Delete this from {client.host}?", abort=True)
            await prepared.run(timeout=timeout, say=_say)
            typer.echo("Uninstalled.")

    _run(work, kubeconfig, context)


async def _check_no_record(client: ApiWriter) -> None:
    from mpijob_elastic.install.failure import InstallError  # noqa: PLC0415 - --help need not load the client
    from upgrade import record  # noqa: PLC0415
    from upgrade.refusal import Refused  # noqa: PLC0415

    try:
        kept = await record.read(client)
    except Refused:
        return  # damaged, so it is no way back
    if kept is not None:
        raise InstallError(
            f"this was installed by `mpijob-elastic upgrade apply`, and the state before it is recorded in Secret "
            f"{names.NAMESPACE}/{record.NAME}, which would go too; take it back with `mpijob-elastic upgrade rollback`"
        )


def _run(work: Callable[[ApiWriter], Awaitable[None]], kubeconfig: Path | None, context: str | None) -> None:
    from mpijob_elastic.kube.client import connect  # noqa: PLC0415 - --help need not load the client

    async def connected() -> None:
        async with await connect(user_agent="mpijob-elastic-install", kubeconfig=kubeconfig, context=context) as client:
            await work(client)

    try:
        asyncio.run(connected())
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again to finish.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _line(found: Found) -> str:
    return f"  {found.identity}"


def _print(manifests: Iterable[Manifest]) -> None:
    import yaml  # noqa: PLC0415 - --help need not load it

    typer.echo(yaml.safe_dump_all(manifests, sort_keys=False), nl=False)


def _say(news: Change | str, *, differences: bool = False) -> None:
    if isinstance(news, str):
        typer.echo(f"waiting: {news}")
        return
    note = f" ({news.note})" if news.note else ""
    typer.echo(f"{typer.style(f'{news.outcome:<11}', fg=_COLOURS.get(news.outcome))} {news.identity}{note}")
    for line in news.difference.splitlines()[2:] if differences else ():
        colour = {"+": "green", "-": "red"}.get(line[:1])
        typer.secho(f"    {line}", fg=colour)

"""Shared by the commands that change a cluster: `install`, `uninstall` and `upgrade`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install.objects import Change, Outcome
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.install.installer import Plan
    from mpijob_elastic.kube.writer import ApiWriter

_COLOURS = {Outcome.CREATED: "green", Outcome.CONFIGURED: "yellow", Outcome.DELETED: "red"}

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds to wait for each step.")]
Overlays = Annotated[list[Overlay] | None, typer.Option("--overlay", help="Can be given several times.")]
JobsNamespaces = Annotated[
    list[str] | None,
    typer.Option("--jobs-namespace", help="Manage the jobs of this namespace; repeatable. Default: of all namespaces."),
]
Uncover = Annotated[
    bool, typer.Option("--uncover", help="Let go of namespaces that are covered now and not given here.")
]
Image = Annotated[
    str | None, typer.Option(help="Image to run. Default: the one that runs; the first installation needs one.")
]
ForceConflicts = Annotated[
    bool, typer.Option("--force-conflicts", help="Overrule fields of our objects that somebody else has changed.")
]
Scale = Annotated[bool, typer.Option(help="Add the scale subresource to the definition of MPIJobs, or take it back.")]
Wait = Annotated[bool, typer.Option(help="Wait until all replicas are ready and trusted.")]


def plan(overlays: list[Overlay] | None, image: str | None, namespaces: list[str] | None) -> Plan:
    """Return the plan for these options. Raises typer.BadParameter if they do not fit together."""
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client

    try:
        return installer.Plan(
            overlays=tuple(overlays or ()), image=image, jobs_namespaces=tuple(dict.fromkeys(namespaces or ()))
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--jobs-namespace") from None


def run(work: Callable[[ApiWriter], Awaitable[None]], kubeconfig: Path | None, context: str | None) -> None:
    """Run `work` with a client. After Ctrl-C, say how to go on."""
    from mpijob_elastic.cli.target import kubeconfig_file  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.kube.client import connect  # noqa: PLC0415

    async def connected() -> None:
        file = kubeconfig_file(kubeconfig)
        async with await connect(user_agent="mpijob-elastic-cli", kubeconfig=file, context=context) as client:
            await work(client)

    try:
        asyncio.run(connected())
    except KeyboardInterrupt:
        say("Interrupted. Run the same command again to finish.", err=True)
        raise typer.Exit(Exit.INTERRUPTED) from None


def tell(news: Change | str, *, prefix: str = "- ", differences: bool = True) -> None:
    """Print the change of an object, or a sentence after `prefix`."""
    if isinstance(news, str):
        say(*(prefix + news).split("\n"))
        return
    note = f" ({news.note})" if news.note else ""
    outcome = typer.style(f"{news.outcome:<11}", fg=_COLOURS.get(news.outcome))
    say(f" {news.identity}{note}", lead=outcome)
    for line in news.difference.splitlines()[2:] if differences else ():
        say(f"    {line}", colour={"+": "green", "-": "red"}.get(line[:1]))


def end(*, dry_run: bool, done: str) -> None:
    """Print how the command ended."""
    say("Dry run: nothing was written." if dry_run else done)

"""`mpijob-elastic uninstall`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import INTERRUPTED, connected, ending, tell
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import DryRun, StepTimeout, Yes
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.install.objects import Say
    from upgrade.uninstall import Uninstallation


@cluster_command(namespace=False, interrupted=INTERRUPTED)
async def uninstall(
    *,
    scale: Annotated[
        bool, typer.Option(help="Remove the scale subresource that `install` added, or leave it.")
    ] = True,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces",
            help=(
                "Remove what the controller wrote on the objects of all jobs, too. Annotations of "
                "users stay."
            ),
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    timeout: StepTimeout = 120.0,
    where: Where,
) -> Exit:
    """Remove controller, webhook and everything else that `install` created. Jobs keep running.

    The scale subresource that `install` added goes too; `--no-scale` leaves it.

    For example:

    - `mpijob-elastic uninstall --dry-run`: show what would be deleted

    - `mpijob-elastic uninstall --traces`: remove what the controller wrote on jobs, too. What a live launcher mounts
      stays; repeat the command when its job has ended

    - `mpijob-elastic uninstall --yes`: without confirmation

    The quota of a queued job without running pods is given back. Repeat the command when other jobs
    have ended.

    A refusal after controller and webhook have gone stops nothing else: the output names each object
    that stays, and why. Remove the cause, and repeat the command.

    Exit codes: 0 done; 1 refused (not confirmed, no rights); 2 wrong usage; 3 done, but the output
    names something that is left to do; 4 not gone in time, or no answer from the API server; 130
    Ctrl-C.
    """
    news = partial(tell, differences=dry_run)

    async with connected(where) as client:
        planned = await work.uninstall.Uninstallation.prepare(
            client, takes_scale=scale, takes_traces=traces
        )
        if planned.is_empty:
            say("Nothing is installed.", *(planned.traces.lines() if planned.traces else ()))
            say(*planned.quota.lines())
            return Exit.DONE
        if dry_run or not yes:
            await _announce(planned, news)
        say(*planned.stays())
        planned.check_none_waits()
        if not dry_run:
            if not yes:
                typer.confirm(f"Delete this from {client.host}?", abort=True)
            left = await planned.run(seconds=timeout, say=news)
            say(*ending(left))
            if left:
                return Exit.OTHERWISE

    return Exit.DONE


async def _announce(planned: Uninstallation, news: Say) -> None:
    """Print the objects and fields that would be removed."""
    if planned.found:
        say("To be deleted, with everything in the namespace:")
        say(*(f"  {one.identity}" for one in planned.found))
    if planned.takes_scale:
        say("To become what it was:")
        await work.scale.take_back(planned.client, dry_run=True, say=news)
    if planned.traces and planned.traces.removals:
        say("To be removed from jobs:", *(f"  {trace}" for trace in planned.traces.removals))

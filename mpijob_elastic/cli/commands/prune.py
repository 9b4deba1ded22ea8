"""`mpijob-elastic prune`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Yes, seconds
from mpijob_elastic.cli.target import Where


@cluster_command(all_namespaces=True)
async def prune(
    *,
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the jobs; delete nothing.")
    ] = False,
    since: Annotated[
        float | None,
        typer.Option(
            "--since",
            "-s",
            parser=seconds,
            metavar="DURATION",
            help="Only jobs that were created longer ago: 30m, 24h.",
        ),
    ] = None,
    where: Where,
) -> Exit:
    """Delete the finished jobs. The command lists them, and asks for confirmation.

    For example:

    - `mpijob-elastic prune`: delete the finished jobs of the context's namespace

    - `mpijob-elastic prune --since 24h`: only those that were created more than a day ago

    - `kubectl mpijob-elastic prune -A --dry-run`: list the finished jobs of all namespaces

    Without a terminal, jobs are deleted only with --yes.

    Exit codes: 0 done; 1 refused, not confirmed, or no right; 2 wrong usage; 3 finished partly (a
    job has changed meanwhile, so it stays); 4 no answer from the API server; 130 Ctrl-C.
    """
    return await work.deletion.prune(where, yes=yes, dry_run=dry_run, older_than=since or 0.0)

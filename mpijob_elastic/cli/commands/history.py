"""`mpijob-elastic history`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.target import Where


@cluster_command()
async def history(
    *,
    job: Job,
    where: Where,
    output: Annotated[
        Literal["table", "wide", "json", "yaml"],
        typer.Option("--output", "-o", help="Output format."),
    ] = "table",
) -> None:
    """Show when, why and by which program a job's number of workers changed, the newest last.

    For example:

    - `mpijob-elastic history train -n ml`: the last 50 changes, how long each took, and how many ranks it cut

    - `mpijob-elastic history mpijob/train -o wide`: times in full, with the date

    - `kubectl mpijob-elastic history train -o json`: the same for programs

    BY is the field manager: a program, not a person. LISTED is the time until discover_hosts.sh
    contained all workers, and TRAINED the time until all ranks began their first step together or, in a job
    that does not tell its progress, until a rank was seen in each new worker. LOST-S is what the change cost in
    GPU-seconds (worker-seconds without GPUs), and REPEATED the steps that were done again. `-` means that this has not
    happened, or that nobody knows.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no
    answer from the API server; 130 Ctrl-C.
    """
    await work.history.history(where, job=job, output=output)

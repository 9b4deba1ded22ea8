"""`mpijob-elastic top`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.target import Where


@cluster_command()
async def top(
    *,
    job: Job,
    sort_by: Annotated[
        Literal["cpu", "memory", "gpu"] | None,
        typer.Option(help="Show the pod that uses most first.", show_default=False),
    ] = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave out the column names.")
    ] = False,
    where: Where,
) -> None:
    """Show the CPU, memory and GPUs that the launcher and the workers use now.

    For example:

    - `mpijob-elastic top train -n ml`

    - `kubectl mpijob-elastic top train --sort-by gpu --no-headers | head -1`: the worker whose GPUs are busiest

    CPU and memory come from metrics-server. GPUs are shown for workers that have nvidia-smi, which
    the command runs by exec with your own rights.

    Exit codes: 0 done; 1 no such job, no running pod, no metrics-server, or no right; 2 wrong
    usage; 4 no answer from the API server; 130 Ctrl-C.
    """
    await work.top.top(where, job=job, sort_by=sort_by, headers=not no_headers)

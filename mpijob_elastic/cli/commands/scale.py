"""`mpijob-elastic scale`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Jobs
from mpijob_elastic.cli.scaling_options import Look, Timeout, Wait
from mpijob_elastic.cli.target import Where


@cluster_command()
async def scale(
    *,
    job: Jobs,
    replicas: Annotated[
        int, typer.Option(min=0, help="The new number of workers.", show_default=False)
    ],
    current_replicas: Annotated[
        int | None,
        typer.Option(min=0, help="Only if the job has this many workers now.", show_default=False),
    ] = None,
    wait: Wait = True,
    timeout: Timeout = "10m",
    look: Look = True,
    where: Where,
) -> Exit:
    """Give running jobs this many workers, and wait until it is so.

    For example:

    - `mpijob-elastic scale train --replicas 4`: add or remove workers, whichever it takes

    - `mpijob-elastic scale train --replicas 4 --current-replicas 2`: only if nobody was faster

    - `kubectl mpijob-elastic scale train eval --replicas 2 --no-wait -n ml`: two jobs; do not wait

    `scaleout` and `scalein` do the same by a count, or with named workers. Like them, the command is
    refused if something else sets the size. Ctrl-C and the timeout undo nothing.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (the size was set back, or a rank was cut); 4 still going at the timeout, or no answer from the
    API server; 130 Ctrl-C.
    """
    patience = work.write_change.Patience(wait=wait, seconds=float(timeout), look=look)
    asked = work.size_request.SizeRequest(to=replicas, current=current_replicas)
    decide = work.size_request.size_decision(asked, waits=wait)
    return await work.several.change(where, job, decide, patience)

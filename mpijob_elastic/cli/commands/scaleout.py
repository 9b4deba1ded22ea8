"""`mpijob-elastic scaleout`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import complete, work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.scaling_options import (
    Count,
    Env,
    Look,
    Timeout,
    To,
    Wait,
    refuse_two,
    scaled,
)
from mpijob_elastic.cli.target import Where


@cluster_command()
async def scaleout(
    *,
    job: Job,
    count: Count = None,
    to: To = None,
    pod: Annotated[
        list[str] | None,
        typer.Option(
            help="Parked worker to bring back: its number or its pod; repeatable.",
            autocompletion=complete.parked,
        ),
    ] = None,
    script: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Shell command to run in the launcher once all workers train.",
            show_default=False,
        ),
    ] = "",
    env: Env = None,
    wait: Wait = True,
    timeout: Timeout = "10m",
    look: Look = True,
    where: Where,
) -> Exit:
    """Add workers to a running job, and wait until a rank runs in each worker.

    For example:

    - `mpijob-elastic scaleout train --count 2`: add two workers

    - `mpijob-elastic scaleout mpijob/train --to 8 --timeout 5m -n ml`: eight workers; wait for at most 5 minutes

    - `mpijob-elastic scaleout train --pod 1`: bring back train-worker-1, which is parked

    - `mpijob-elastic scaleout train --env SIZE=3 --script 'sh grown.sh $SIZE'`: run the script in the launcher afterwards

    - `kubectl mpijob-elastic scaleout train --no-wait`: add one worker, and do not wait

    Parked workers come back first. The command is refused if an HPA, KEDA, the annotation
    `mpijob-elastic/autoscale` or a GitOps tool sets the size. Ctrl-C and the timeout undo nothing.
    A script runs by exec with your own rights, within the timeout; its output is shown on standard
    error.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (the size was set back, or all workers train but the script failed); 4 still going at the
    timeout, or no answer from the API server; 130 Ctrl-C.
    """
    refuse_two(count, to, pod)
    if script and not wait:
        raise typer.BadParameter(
            "the script runs once all workers train: leave out --no-wait", param_hint="--script"
        )
    patience = work.write_change.Patience(wait=wait, seconds=float(timeout), look=look)
    asked = work.size_request.SizeRequest(grows=True, count=count, to=to, pods=pod or ())
    return await scaled(where, job, asked, patience, script, env)

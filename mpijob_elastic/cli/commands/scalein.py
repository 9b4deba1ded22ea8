"""`mpijob-elastic scalein`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import complete, work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.scaling_options import Count, Env, Timeout, To, Wait, refuse_two, scaled
from mpijob_elastic.cli.target import Where


@cluster_command()
async def scalein(
    *,
    job: Job,
    count: Count = None,
    to: To = None,
    pod: Annotated[
        list[str] | None,
        typer.Option(
            help="Worker to remove: its number or its pod; repeatable.",
            autocompletion=complete.wanted,
        ),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option(help="Remove all workers on this node; repeatable.")
    ] = None,
    script: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Shell command to run in the launcher before workers leave.",
            show_default=False,
        ),
    ] = "",
    env: Env = None,
    wait: Wait = True,
    timeout: Timeout = "10m",
    where: Where,
) -> Exit:
    """Remove workers from a running job, and wait until they are gone.

    Without --pod and --node, the workers with the highest numbers leave.

    For example:

    - `mpijob-elastic scalein train --count 2`: remove two workers

    - `mpijob-elastic scalein mpijob/train --to 2 -n ml`: keep two workers

    - `mpijob-elastic scalein train --pod 1 --pod 3`: remove train-worker-1 and train-worker-3

    - `mpijob-elastic scalein train --node gpu-7`: remove the workers on that node

    - `mpijob-elastic scalein train --env STEP=last --script 'sh save.sh $STEP'`: run the script in the launcher first

    - `kubectl mpijob-elastic scalein train --no-wait`: remove one worker, and do not wait

    A removed worker whose number is below that of a worker that stays is parked by the annotation
    `mpijob-elastic/parked`; `scaleout` brings parked workers back first. Each worker leaves the
    host list first, and is deleted when its rank has left or when `mpijob-elastic/drain-timeout` is
    over. The command is refused in the same cases as `scaleout`. Ctrl-C and the timeout undo
    nothing. A script runs by exec with your own rights, within the timeout; its output is shown on
    standard error. If the script fails, no worker leaves.

    Exit codes: 0 done; 1 refused, no such job, no right, or the script failed; 2 wrong usage; 3
    finished differently (a drain timeout was over); 4 still going at the timeout, or no answer from
    the API server; 130 Ctrl-C.
    """
    refuse_two(count, to, pod, node)
    patience = work.write_change.Patience(wait=wait, seconds=float(timeout), look=False)
    asked = work.size_request.SizeRequest(
        grows=False, count=count, to=to, pods=pod or (), nodes=node or ()
    )
    return await scaled(where, job, asked, patience, script, env)

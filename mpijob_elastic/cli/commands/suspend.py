"""`mpijob-elastic suspend`."""

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Jobs
from mpijob_elastic.cli.scaling_options import Timeout, Wait
from mpijob_elastic.cli.target import Where


@cluster_command()
async def suspend(
    *,
    job: Jobs,
    wait: Wait = True,
    timeout: Timeout = "10m",
    where: Where,
) -> Exit:
    """Stop jobs but keep them, and wait until none of their pods run.

    For example:

    - `mpijob-elastic suspend train`: training ends; `resume` starts it again from its last checkpoint

    - `mpijob-elastic suspend train eval`: both stop at the same time

    - `kubectl mpijob-elastic suspend mpijob/train --no-wait -n ml`: do not wait

    The command sets the annotation `mpijob-elastic/suspend`. The job shrinks first, so its workers
    drain. Ctrl-C and the timeout undo nothing.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (the job has ended); 4 still going at the timeout, or no answer from the API server; 130 Ctrl-C.
    """
    patience = work.write_change.Patience(wait=wait, seconds=float(timeout), look=False)
    return await work.several.change(where, job, work.size_request.suspending, patience)

"""`mpijob-elastic resume`."""

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Jobs
from mpijob_elastic.cli.scaling_options import Look, Timeout, Wait
from mpijob_elastic.cli.target import Where


@cluster_command()
async def resume(
    *,
    job: Jobs,
    wait: Wait = True,
    timeout: Timeout = "10m",
    look: Look = True,
    where: Where,
) -> Exit:
    """Start suspended jobs again, and wait until a rank runs in each worker.

    For example:

    - `mpijob-elastic resume train eval`

    - `kubectl mpijob-elastic resume mpijob/train --timeout 30m -n ml`: wait for at most 30 minutes

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (something else suspends the job, or the job has ended); 4 still going at the timeout, or no
    answer from the API server; 130 Ctrl-C.
    """
    patience = work.write_change.Patience(wait=wait, seconds=float(timeout), look=look)
    decide = work.size_request.resuming
    return await work.several.change(where, job, decide, patience, creates=True)

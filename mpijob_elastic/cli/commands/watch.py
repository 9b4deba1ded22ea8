"""`mpijob-elastic watch`."""

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.target import Where


@cluster_command()
async def watch(
    *,
    job: Job,
    where: Where,
) -> Exit:
    """Follow a job until it ends: a live page on a terminal, otherwise a line for each change.

    For example:

    - `mpijob-elastic watch train -n ml`

    - `kubectl mpijob-elastic watch train | tee train.log`

    Exit codes: 0 the job succeeded; 1 the job failed, was deleted, or you may not read it; 2 wrong
    usage; 4 no answer from the API server at the start; 130 Ctrl-C.
    """
    succeeded = await work.watch.watch(where, job=job)
    return Exit.DONE if succeeded else Exit.REFUSED

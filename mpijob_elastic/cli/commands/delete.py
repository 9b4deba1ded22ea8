"""`mpijob-elastic delete`."""

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import IgnoreNotFound, Jobs, Yes
from mpijob_elastic.cli.target import Where


@cluster_command()
async def delete(
    *,
    job: Jobs,
    yes: Yes = False,
    ignore_not_found: IgnoreNotFound = False,
    where: Where,
) -> Exit:
    """Delete jobs with their pods. If a job trains, the command asks for confirmation.

    For example:

    - `mpijob-elastic delete train`

    - `mpijob-elastic delete train eval`: two jobs; one that is missing or must stay holds back no other

    - `kubectl mpijob-elastic delete mpijob/train --yes -n ml`: without confirmation, for scripts

    Without a terminal, a job that trains is deleted only with --yes.

    Exit codes: 0 done; 1 refused, not confirmed, no such job, or no right; 2 wrong usage; 4 no
    answer from the API server; 130 Ctrl-C.
    """
    return await work.deletion.delete(where, job, yes=yes, missing_is_fine=ignore_not_found)

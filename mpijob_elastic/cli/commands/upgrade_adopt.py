"""`mpijob-elastic upgrade adopt`."""

import time
from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import INTERRUPTED, connected, tell
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import StepTimeout, Yes
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.telemetry.terminal import say


@cluster_command(interrupted=INTERRUPTED)
async def adopt(
    *,
    job: Annotated[str, typer.Argument(help="The MPIJob.", show_default=False)],
    where: Where,
    yes: Yes = False,
    timeout: StepTimeout = 120.0,
) -> Exit:
    """Make a running job elastic by recreating its launcher.

    Training starts again from the last checkpoint.

    A job needs this if its launcher started before mpijob-elastic was installed, before the job was
    made elastic, or while the webhook was down; `mpijob-elastic explain` says so. Deleting the pod
    instead makes the operator fail the job.

    For example:

    - `mpijob-elastic upgrade adopt train -n ml`: say what is lost, and ask

    Exit codes: 0 done, or not needed; 1 refused (not confirmed, no rights); 2 wrong usage; 4 not in
    time, or no answer from the API server; 130 Ctrl-C.
    """
    namespace = work.connection.namespace_of(where)

    def ask() -> bool:
        if not yes:
            work.deletion.need_terminal()
        return yes or typer.confirm("Delete the launcher?")

    async with connected(where) as client:
        working = await work.at_work.check(client, now=time.time())
        if working.trouble and not working.may_return:
            raise Refused(f"{working.trouble}; {working.advice}")
        if not await work.adopt.adopt(
            client, namespace, job, ask=ask, say=tell, now=time.time(), timeout=timeout
        ):
            say("Not confirmed: nothing was changed.", err=True)
            return Exit.REFUSED
        say("Done.")
    return Exit.DONE

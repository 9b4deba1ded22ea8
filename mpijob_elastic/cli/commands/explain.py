"""`mpijob-elastic explain`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Job, Output, worker_argument
from mpijob_elastic.cli.target import Where

_EXITS = {True: Exit.DONE, False: Exit.REFUSED, None: Exit.NOT_KNOWN}


@cluster_command()
async def explain(
    *,
    job: Job,
    worker: Annotated[
        str | None, worker_argument("Explain only this worker: its number or its pod.")
    ] = None,
    where: Where,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    look: Annotated[
        bool,
        typer.Option("--exec/--no-exec", help="Look into the pods by exec, with your own rights."),
    ] = True,
) -> Exit:
    """Explain why workers of a job are not training, and what to do next.

    For example:

    - `mpijob-elastic explain train -n ml`: findings on the job, and a cause for each worker

    - `mpijob-elastic explain train 2`: only train-worker-2

    - `kubectl mpijob-elastic explain train --no-exec -o json`: for programs, without looking into the pods

    The command changes nothing. It lists the processes in the workers and the launcher by exec, and
    searches the last lines of the launcher's log for Horovod's "Missing ranks". Without the right
    to exec, it cannot tell whether workers train.

    Exit codes: 0 every worker trains; 1 a worker does not train, something is wrong, no such job,
    or no right to read it; 2 wrong usage; 4 unknown whether workers train, or no answer from the
    API server; 130 Ctrl-C.
    """
    all_train = await work.explain.explain(where, job=job, worker=worker, output=output, look=look)
    return _EXITS[all_train]

"""`mpijob-elastic resubmit`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.creation_options import FollowLog, JobOutput, WaitForTraining, creation
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Job
from mpijob_elastic.cli.scaling_options import Look, Timeout
from mpijob_elastic.cli.target import Where


@cluster_command()
async def resubmit(
    *,
    job: Job,
    name: Annotated[
        str,
        typer.Option(
            help="Name of the new job. Default: the same with the next number.", show_default=False
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the job, with its namespace; create none.")
    ] = False,
    wait: WaitForTraining = False,
    timeout: Timeout = "10m",
    look: Look = True,
    logs: FollowLog = False,
    output: JobOutput = "text",
    where: Where,
) -> Exit:
    """Create a finished job once more, under another name.

    For example:

    - `mpijob-elastic resubmit train -n ml`: creates train-2, and train-3 the next time

    - `kubectl mpijob-elastic resubmit train --name train-again --logs`: and follows its log

    The new job has the labels, annotations, size and spec of the other, which stays with its log. A
    suspension and parked workers are not copied, nor marks by which Helm, Argo CD or Flux own a job.
    A job that KubeQueue released waits in KubeQueue again, if it still has KubeQueue's annotation.

    Exit codes: 0 done; 1 refused, for example because the job has not ended, no such job, or no
    right, or with --logs the job failed; 2 wrong usage; 3 finished differently (with --wait alone,
    the job has ended); 4 still going at the timeout of --wait alone, or no answer from the API
    server; 130 Ctrl-C.
    """
    asked = creation(
        "client" if dry_run else "none", output, wait=wait, timeout=timeout, look=look, logs=logs
    )
    return await work.resubmission.resubmit(where, job, name=name, asked=asked)

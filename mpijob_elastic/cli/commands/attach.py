"""`mpijob-elastic attach`."""

from typing import Annotated

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job, worker_argument
from mpijob_elastic.cli.target import Where


@cluster_command()
def attach(
    *,
    job: Job,
    worker: Annotated[
        str | None, worker_argument("The worker: its number or its pod. Default: the launcher.")
    ] = None,
    where: Where,
) -> None:
    """Open a shell in a worker, or in the launcher.

    For example:

    - `mpijob-elastic attach train 2 -n ml`: a shell in train-worker-2

    - `kubectl mpijob-elastic attach train`: a shell in the launcher

    The command runs `kubectl exec -it` with the right pod and container, so it needs kubectl and
    the right to exec. Processes that you start in the shell do not count as ranks: they delay no
    drain, and hide no lost rank.

    Exit codes: 0 done; 1 no such job or worker, the pod does not run, no right, or no terminal; 2
    wrong usage; 4 no answer from the API server; 130 Ctrl-C; otherwise the exit code of the shell.
    """
    work.pods.attach(where, job=job, worker=worker)

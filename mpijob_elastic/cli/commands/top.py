"""`mpijob-elastic top`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli import complete, work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import NoHeaders, Selector, job_name
from mpijob_elastic.cli.target import Where


@cluster_command(all_namespaces=True)
async def top(
    *,
    job: Annotated[
        str | None,
        typer.Argument(
            help="Show the pods of this job. Default: a row for each job.",
            callback=job_name,
            autocompletion=complete.jobs,
            show_default=False,
        ),
    ] = None,
    selector: Selector = "",
    sort_by: Annotated[
        Literal["cpu", "memory", "gpu"] | None,
        typer.Option(help="Show the pod, or the job, that uses most first.", show_default=False),
    ] = None,
    no_headers: NoHeaders = False,
    where: Where,
) -> None:
    """Show the CPU, memory and GPUs that jobs use now, or the pods of a job.

    For example:

    - `mpijob-elastic top -n ml`: a row for each job that has a running pod

    - `mpijob-elastic top train -n ml`: a row for the launcher and each worker

    - `kubectl mpijob-elastic top train --sort-by gpu --no-headers | head -1`: the worker whose GPUs are busiest

    CPU and memory come from metrics-server. GPUs are shown for workers that have nvidia-smi, which
    the command runs by exec with your own rights, in at most 64 workers.

    Exit codes: 0 done; 1 no such job, no running pod, no metrics-server, or no right; 2 wrong
    usage; 4 no answer from the API server; 130 Ctrl-C.
    """
    if job is None:
        await work.top.top_jobs(where, labels=selector, sort_by=sort_by, headers=not no_headers)
        return
    if where.all_namespaces or selector:
        raise typer.BadParameter("give a job, or --all-namespaces and --selector for all jobs")
    await work.top.top(where, job=job, sort_by=sort_by, headers=not no_headers)

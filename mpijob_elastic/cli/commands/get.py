"""`mpijob-elastic get`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli import complete, work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import job_name
from mpijob_elastic.cli.target import Where

OutputOfGet = Literal["table", "wide", "json", "yaml", "name"]


@cluster_command(all_namespaces=True, several_contexts=True)
async def get(
    *,
    job: Annotated[
        str | None,
        typer.Argument(
            help="Show only this job, with all details.",
            callback=job_name,
            autocompletion=complete.jobs,
            show_default=False,
        ),
    ] = None,
    where: list[Where],
    output: Annotated[OutputOfGet, typer.Option("--output", "-o", help="Output format.")] = "table",
) -> Exit:
    """List jobs with their desired, Ready, published and draining workers, or show one job in full.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic list -A -o wide`: the jobs of all namespaces, with duration, the GPUs that their pods hold, queue,
      priority, bounds and launcher; `list` is another name for `get`

    - `mpijob-elastic get -A --context east --context west`: the jobs of two clusters in one table

    - `mpijob-elastic get train -n ml`: a job, its workers and the controller's next steps; with `-o wide`, each worker
      of a large job, too

    - `kubectl mpijob-elastic get train -o json`: the same for programs, as a kubectl plugin

    PROGRESS and ETA need the right to exec into workers: a look reads the line that the program writes. `get JOB` also
    says where the job's GPU-seconds went. "-" is what no program wrote.

    Clusters that cannot be read are named in a line; the others are shown.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer from the
    API server; 130 Ctrl-C.
    """
    if job and where[0].all_namespaces:
        raise typer.BadParameter(
            "a job is in one namespace: choose the namespace with -n", param_hint="-A"
        )
    if job and len(where) > 1:
        raise typer.BadParameter(
            "a job is in one cluster: choose the cluster with one --context", param_hint="--context"
        )
    return Exit(await work.show.get(where, job=job, output=output))

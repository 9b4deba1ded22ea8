"""`mpijob-elastic dashboard`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.target import Where


@cluster_command(all_namespaces=True)
async def dashboard(
    *,
    job: Annotated[
        str | None, typer.Argument(help="Open the page of this job.", show_default=False)
    ] = None,
    where: Where,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open it in a browser, or print its link."),
    ] = True,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")
    ] = 0,
) -> None:
    """Open a live page that shows what jobs do now and why, until Ctrl-C.

    For example:

    - `mpijob-elastic dashboard`: the jobs of the context's namespace; with `-A`, of all namespaces

    - `mpijob-elastic dashboard train -n ml`: a job, its workers over time, Events and the launcher's last lines

    - `mpijob-elastic dashboard --no-browser --port 8765`: on another machine, behind `ssh -L 8765:127.0.0.1:8765`

    The page is served only on this machine and only to your browser, with your kubeconfig and
    rights. While the page of a job is open, the command lists the workers' processes by exec, every
    30 s at most. The buttons scale, park, suspend and resume the job, as the commands do; each asks
    first.

    Exit codes: 0 SIGTERM; 1 no such job, no right to read it, or the port is taken; 2 wrong usage;
    4 no answer from the API server; 130 Ctrl-C.
    """
    if job and where.all_namespaces:
        raise typer.BadParameter(
            "a job is in one namespace: choose the namespace with -n", param_hint="-A"
        )
    await work.dashboard.dashboard(where, job=job, port=port, browser=browser)

"""`mpijob-elastic get`, `watch`, `explain` and `dashboard`: only the last has buttons that change something."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from mpijob_elastic.cli import complete
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import (
    AllNamespaces,
    Context,
    Contexts,
    Job,
    Kubeconfig,
    Namespace,
    Output,
    job_name,
    worker_argument,
)

OutputOfGet = Literal["table", "wide", "json", "yaml", "name"]
_EXITS = {True: Exit.DONE, False: Exit.REFUSED, None: Exit.NOT_KNOWN}


def get(
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
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Annotated[OutputOfGet, typer.Option("--output", "-o", help="Output format.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Contexts = None,
) -> None:
    """Show MPIJobs: how many workers are desired, Ready, published and draining; show a single job in full.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic list -A -o wide`: the jobs of all namespaces, with duration, the GPUs that their pods hold, queue,
      priority, bounds and launcher; `list` is another name of `get`

    - `mpijob-elastic get -A --context east --context west`: of two clusters, in one table

    - `mpijob-elastic get train -n ml`: a job, its workers and the controller's next steps

    - `kubectl mpijob-elastic get train -o json`: the same for programs, as a kubectl plugin

    Of several clusters, a line tells which cannot be read, and the others are shown.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import get  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    if job and all_namespaces:
        raise typer.BadParameter("a job is in one namespace: choose it with -n", param_hint="-A")
    if job and len(context or ()) > 1:
        raise typer.BadParameter("a job is in one cluster: choose it with one --context", param_hint="--context")
    given: Sequence[str | None] = context or [None]
    clusters = [
        Where(kubeconfig=kubeconfig, context=one, namespace=namespace, all_namespaces=all_namespaces) for one in given
    ]
    raise typer.Exit(asyncio.run(get.get(clusters, job=job, output=output)))


def watch(
    *,
    job: Job,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Follow a job until it ends: a live page on a terminal, otherwise a line for each change.

    For example:

    - `mpijob-elastic watch train -n ml`

    - `kubectl mpijob-elastic watch train | tee train.log`

    Exit codes: 0 the job succeeded; 1 the job failed, was deleted, or you may not read it; 2 wrong usage; 4 no answer
    of the API server at the start; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import watch  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    succeeded = asyncio.run(watch.watch(where, job=job))
    raise typer.Exit(Exit.DONE if succeeded else Exit.REFUSED)


def explain(
    *,
    job: Job,
    worker: Annotated[str | None, worker_argument("Explain only this worker: its number or its pod.")] = None,
    namespace: Namespace = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    look: Annotated[
        bool, typer.Option("--exec/--no-exec", help="Look into the pods by exec, with your own rights.")
    ] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Explain why workers of a job are not training, and what to do next.

    For example:

    - `mpijob-elastic explain train -n ml`: findings on the job, and a cause for each worker

    - `mpijob-elastic explain train 2`: only train-worker-2

    - `kubectl mpijob-elastic explain train --no-exec -o json`: for programs, without looking into the pods

    The command changes nothing. By exec it lists the processes in the workers and the launcher. Where you may not
    exec, whether workers train is not known. In the last lines of the launcher's log it looks for Horovod's "Missing
    ranks".

    Exit codes: 0 every worker trains; 1 a worker does not train, something is wrong, no such job, no right to read it;
    2 wrong usage; 4 not known whether workers train, or no answer of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import explain  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    all_train = asyncio.run(explain.explain(where, job=job, worker=worker, output=output, look=look))
    raise typer.Exit(_EXITS[all_train])


def dashboard(
    *,
    job: Annotated[str | None, typer.Argument(help="Open the page of this job.", show_default=False)] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it in the browser, or print a link.")
    ] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")] = 0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Open a page that shows what jobs do now and why, live, until Ctrl-C.

    For example:

    - `mpijob-elastic dashboard`: the jobs of the context's namespace; `-A`: of all namespaces

    - `mpijob-elastic dashboard train -n ml`: a job, its workers over time, Events and the launcher's last lines

    - `mpijob-elastic dashboard --no-browser --port 8765`: on another machine, behind `ssh -L 8765:127.0.0.1:8765`

    The page is served on this machine alone, to your browser alone, with your kubeconfig and rights. While the page
    of a job is open, the workers' processes are listed by exec, every 30 s at most. Its buttons scale, park,
    suspend and resume the job, as the commands do; each asks first.

    Exit codes: 1 no such job, no right to read it, or the port is taken; 2 wrong usage; 4 no answer of the API server;
    0 SIGTERM; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.dashboard import server  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    if job and all_namespaces:
        raise typer.BadParameter("a job is in one namespace: choose it with -n", param_hint="-A")
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces)
    asyncio.run(server.dashboard(where, job=job, port=port, browser=browser))

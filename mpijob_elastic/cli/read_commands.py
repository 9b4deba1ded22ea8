"""The commands that show jobs. Only the page of `dashboard` has buttons that change jobs."""

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
    seconds,
    worker_argument,
)
from mpijob_elastic.cli.target import Where

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
    """List jobs with their desired, Ready, published and draining workers, or show one job in full.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic list -A -o wide`: the jobs of all namespaces, with duration, the GPUs that their pods hold, queue,
      priority, bounds and launcher; `list` is another name for `get`

    - `mpijob-elastic get -A --context east --context west`: the jobs of two clusters in one table

    - `mpijob-elastic get train -n ml`: a job, its workers and the controller's next steps; with `-o wide`, each worker
      of a large job, too

    - `kubectl mpijob-elastic get train -o json`: the same for programs, as a kubectl plugin

    Clusters that cannot be read are named in a line; the others are shown.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer from the
    API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import show  # noqa: PLC0415 - --help need not load the client

    if job and all_namespaces:
        raise typer.BadParameter(
            "a job is in one namespace: choose the namespace with -n", param_hint="-A"
        )
    if job and len(context or ()) > 1:
        raise typer.BadParameter(
            "a job is in one cluster: choose the cluster with one --context", param_hint="--context"
        )
    given: Sequence[str | None] = context or [None]
    clusters = [
        Where(
            kubeconfig=kubeconfig, context=one, namespace=namespace, all_namespaces=all_namespaces
        )
        for one in given
    ]
    raise typer.Exit(asyncio.run(show.get(clusters, job=job, output=output)))


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

    Exit codes: 0 the job succeeded; 1 the job failed, was deleted, or you may not read it; 2 wrong
    usage; 4 no answer from the API server at the start; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import show  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    succeeded = asyncio.run(show.watch(where, job=job))
    raise typer.Exit(Exit.DONE if succeeded else Exit.REFUSED)


def explain(
    *,
    job: Job,
    worker: Annotated[
        str | None, worker_argument("Explain only this worker: its number or its pod.")
    ] = None,
    namespace: Namespace = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    look: Annotated[
        bool,
        typer.Option("--exec/--no-exec", help="Look into the pods by exec, with your own rights."),
    ] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
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
    from mpijob_elastic.cli.jobs import explain  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    all_train = asyncio.run(
        explain.explain(where, job=job, worker=worker, output=output, look=look)
    )
    raise typer.Exit(_EXITS[all_train])


def history(
    *,
    job: Job,
    namespace: Namespace = None,
    output: Annotated[
        Literal["table", "wide", "json", "yaml"],
        typer.Option("--output", "-o", help="Output format."),
    ] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show when, why and by which program a job's number of workers changed, the newest last.

    For example:

    - `mpijob-elastic history train -n ml`: the last 50 changes, how long each took, and how many ranks it cut

    - `mpijob-elastic history mpijob/train -o wide`: times in full, with the date

    - `kubectl mpijob-elastic history train -o json`: the same for programs

    BY is the field manager: a program, not a person. LISTED is the time until discover_hosts.sh
    contained all workers, and TRAINED the time until a rank was seen in each new worker. `-` means
    that this has not happened, or that nobody looked.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no
    answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import history  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    asyncio.run(history.history(where, job=job, output=output))


def logs(
    *,
    job: Job,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Keep on until the job ends, through restarts and new launchers."
        ),
    ] = False,
    since: Annotated[
        float | None,
        typer.Option(
            parser=seconds, metavar="DURATION", help="Only lines of this last time: 90s, 5m, 2h."
        ),
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Only this many last lines.")] = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The log before the container restarted.")
    ] = False,
    rank: Annotated[
        int | None,
        typer.Option(
            min=0, help="Only lines that Horovod marks with this rank, with the worker of each."
        ),
    ] = None,
    worker: Annotated[
        str | None, typer.Option(help="Only lines of this worker: its number or its pod.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the launcher's log, which contains the output of all ranks.

    For example:

    - `mpijob-elastic logs train -n ml --tail 20`: the last lines

    - `mpijob-elastic logs train -f`: wait for the launcher, and follow it until the job ends

    - `kubectl mpijob-elastic logs train --worker 2`: what the ranks in train-worker-2 print

    `[N]` before a line is the rank with which its process was started. The process keeps this
    number when Horovod assigns the ranks anew, and a process in a new worker may get the same
    number. With --rank or --worker, the command lists the processes of the launcher by exec, with
    your own rights, to learn which worker prints which number. If a line may come from two workers,
    both are named.

    Exit codes: 0 done; 1 no such job or worker, no log yet, or no right to read it; 2 wrong usage;
    4 no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import logs  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.jobs.logs import Wanted  # noqa: PLC0415

    if rank is not None and worker is not None:
        raise typer.BadParameter("give --rank or --worker, not both", param_hint="--rank")
    if previous and follow:
        raise typer.BadParameter(
            "the previous log has ended: leave out -f", param_hint="--previous"
        )
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    wanted = Wanted(
        follow=follow, since=since, tail=tail, previous=previous, rank=rank, worker=worker
    )
    asyncio.run(logs.logs(where, job=job, wanted=wanted))


def attach(
    *,
    job: Job,
    worker: Annotated[
        str | None, worker_argument("The worker: its number or its pod. Default: the launcher.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
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
    from mpijob_elastic.cli.jobs import pods  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    pods.attach(where, job=job, worker=worker)


def top(
    *,
    job: Job,
    sort_by: Annotated[
        Literal["cpu", "memory", "gpu"] | None,
        typer.Option(help="Show the pod that uses most first.", show_default=False),
    ] = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave out the column names.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the CPU, memory and GPUs that the launcher and the workers use now.

    For example:

    - `mpijob-elastic top train -n ml`

    - `kubectl mpijob-elastic top train --sort-by gpu --no-headers | head -1`: the worker whose GPUs are busiest

    CPU and memory come from metrics-server. GPUs are shown for workers that have nvidia-smi, which
    the command runs by exec with your own rights.

    Exit codes: 0 done; 1 no such job, no running pod, no metrics-server, or no right; 2 wrong
    usage; 4 no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import top  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    asyncio.run(top.top(where, job=job, sort_by=sort_by, headers=not no_headers))


def dashboard(
    *,
    job: Annotated[
        str | None, typer.Argument(help="Open the page of this job.", show_default=False)
    ] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open it in a browser, or print its link."),
    ] = True,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")
    ] = 0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
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
    from mpijob_elastic.cli.dashboard import server  # noqa: PLC0415 - --help need not load the client

    if job and all_namespaces:
        raise typer.BadParameter(
            "a job is in one namespace: choose the namespace with -n", param_hint="-A"
        )
    where = Where(
        kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces
    )
    asyncio.run(server.dashboard(where, job=job, port=port, browser=browser))

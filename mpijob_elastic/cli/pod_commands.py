"""`mpijob-elastic logs`, `attach` and `top`: what runs in the pods of a job."""

import asyncio
from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.options import Context, Job, Kubeconfig, Namespace, seconds, worker_argument


def logs(
    *,
    job: Job,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job ends, through restarts and new launchers.")
    ] = False,
    since: Annotated[
        float | None, typer.Option(parser=seconds, metavar="DURATION", help="Only lines of the last 90s, 5m or 2h.")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many of the last lines.")] = None,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="The container before its last restart.")] = False,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Only lines of this rank, as Horovod prints it, with their workers.")
    ] = None,
    worker: Annotated[str | None, typer.Option(help="Only lines of this worker: its number or its pod.")] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the log of a job's launcher, in which the output of all ranks is.

    For example:

    - `mpijob-elastic logs train -n ml --tail 20`: the last lines

    - `mpijob-elastic logs train -f`: wait for the launcher, and follow it until the job ends

    - `kubectl mpijob-elastic logs train --worker 2`: what the ranks in train-worker-2 print

    `[N]` before a line is the rank with which its process was started. A process keeps it when the ranks are dealt
    again, and a new worker may get it once more: where a line may be of two workers, both are named. To know which
    worker prints which, the command lists the processes of the launcher by exec, with your own rights.

    Exit codes: 0 done; 1 no such job or worker, no log yet, no rights; 2 wrong usage; 4 no answer of the API server;
    130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import logs  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.jobs.launcher_log import Wanted  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    if rank is not None and worker is not None:
        raise typer.BadParameter("choose lines by --rank or by --worker", param_hint="--rank")
    if previous and follow:
        raise typer.BadParameter("that log has ended: leave out -f", param_hint="--previous")
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    wanted = Wanted(follow=follow, since=since, tail=tail, previous=previous, rank=rank, worker=worker)
    asyncio.run(logs.logs(where, job=job, wanted=wanted))


def attach(
    *,
    job: Job,
    worker: Annotated[str | None, worker_argument("The worker: its number or its pod. Default: the launcher.")] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Open a shell in a worker, or in the launcher.

    For example:

    - `mpijob-elastic attach train 2 -n ml`: a shell in train-worker-2

    - `kubectl mpijob-elastic attach train`: a shell in the launcher

    It is `kubectl exec -it` with the right pod and container, so it needs kubectl and the right to exec. What you start
    there counts as no rank: it delays no drain, and hides no rank that is lost.

    Exit codes: 0 done; 1 no such job or worker, the pod does not run, no rights, no terminal; 2 wrong usage; 4 no
    answer of the API server; 130 Ctrl-C; otherwise what the shell exits with.
    """
    from mpijob_elastic.cli.jobs import attach  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    attach.attach(where, job=job, worker=worker)


def top(
    *,
    job: Job,
    sort_by: Annotated[
        Literal["cpu", "memory", "gpu"] | None, typer.Option(help="Show first what uses most.", show_default=False)
    ] = None,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Leave out the names of the columns.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show CPU, memory and GPUs that the launcher and the workers use now.

    For example:

    - `mpijob-elastic top train -n ml`

    - `kubectl mpijob-elastic top train --sort-by gpu --no-headers | head -1`: the worker whose GPUs have most to do

    CPU and memory come from metrics-server. GPUs are shown where a worker has nvidia-smi, which is run by exec with
    your own rights.

    Exit codes: 0 done; 1 no such job, no pod runs, no metrics-server, no rights; 2 wrong usage; 4 no answer of the API
    server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import top  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    asyncio.run(top.top(where, job=job, sort_by=sort_by, headers=not no_headers))

"""`mpijob-elastic explain`."""

from typing import Annotated

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Kubeconfig, Namespace, Output

_EXITS = {True: Exit.DONE, False: Exit.REFUSED, None: Exit.NOT_KNOWN}


def explain(
    *,
    job: Annotated[str, typer.Argument(help="The job to explain.", show_default=False)],
    worker: Annotated[
        str | None, typer.Argument(help="Explain only this worker: its number or its pod.", show_default=False)
    ] = None,
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
    exec, whether workers train is not known.

    Exit codes: 0 every worker trains; 1 a worker does not train, something is wrong, no such job, no right to read it;
    2 wrong usage; 4 not known whether workers train, or no answer of the API server; 130 Ctrl-C.
    """
    import asyncio  # noqa: PLC0415 - --help need not load the client

    from mpijob_elastic.cli.jobs import explain  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    all_train = asyncio.run(explain.explain(where, job=job, worker=worker, output=output, look=look))
    raise typer.Exit(_EXITS[all_train])

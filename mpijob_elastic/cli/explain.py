"""`mpijob-elastic explain`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.options import Context, Kubeconfig, Namespace
from mpijob_elastic.telemetry.terminal import say

Output = Literal["table", "json", "yaml"]

NOT_ALL_TRAIN = 1
NOT_SEEN = 2


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
    controller_namespace: Annotated[
        str | None,
        typer.Option(
            help="Namespace of the controller's Lease. Default: that of the webhook Service if you may read it, else "
            "mpijob-elastic.",
            show_default=False,
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Explain why workers of a job are not training, and what to do next.

    For example:

    - `mpijob-elastic explain train -n ml`: findings on the job, and a cause for each worker

    - `mpijob-elastic explain train 2`: only train-worker-2

    - `kubectl mpijob-elastic explain train --no-exec -o json`: for programs, without looking into the pods

    The command changes nothing. By exec it lists the processes in the workers and the launcher; without the right
    to create pods/exec it leaves that out.

    Exit codes: 0 every worker trains; 1 a worker does not train, or something is wrong; 2 wrong usage, or nothing to
    explain (no such job or worker, missing rights, no cluster).
    """
    import asyncio  # noqa: PLC0415 - --help need not load the client

    from mpijob_elastic.cli.jobs import explain  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415
    from mpijob_elastic.kube.errors import KubeError  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    try:
        all_train = asyncio.run(
            explain.explain(
                where, job=job, worker=worker, output=output, look=look, controller_namespace=controller_namespace
            )
        )
    except (KubeError, OSError) as error:
        say(*f"mpijob-elastic: {error}".split("\n"), err=True)
        raise typer.Exit(NOT_SEEN) from None
    raise typer.Exit(0 if all_train else NOT_ALL_TRAIN)

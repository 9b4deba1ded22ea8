"""`mpijob-elastic get`."""

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.options import AllNamespaces, Context, Kubeconfig, Namespace

Output = Literal["table", "wide", "json", "yaml"]


def get(
    *,
    job: Annotated[str | None, typer.Argument(help="Show only this job, with all details.", show_default=False)] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show MPIJobs: how many workers are desired, Ready, published and draining; show a single job in full.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic get -A -o wide`: the jobs of all namespaces, with bounds, drain-timeout and launcher

    - `mpijob-elastic get train -n ml`: a job, its workers and the controller's next steps

    - `kubectl mpijob-elastic get train -o json`: the same for programs, as a kubectl plugin

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer of the API server; 130 Ctrl-C.
    """
    import asyncio  # noqa: PLC0415 - --help need not load the client

    from mpijob_elastic.cli.jobs import get  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    if job and all_namespaces:
        raise typer.BadParameter("a job is in one namespace: choose it with -n", param_hint="-A")
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces)
    asyncio.run(get.get(where, job=job, output=output))

"""`mpijob-elastic get`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.options import AllNamespaces, Context, Kubeconfig, Namespace

Output = Literal["table", "wide", "json", "yaml"]


def get(
    *,
    job: Annotated[str | None, typer.Argument(help="Only this job, with all details.", show_default=False)] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show MPIJobs: how many workers are asked for, Ready, published and draining; of one job everything.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic get -A -o wide`: all jobs, with their bounds, drain-timeout and launcher

    - `mpijob-elastic get train -n ml`: one job, its workers and what the controller does next

    - `kubectl mpijob-elastic get train -o json`: the same for programs, through kubectl

    Exit codes: 0 printed; 1 not to be had (no such job, no rights, no cluster); 2 wrong usage.
    """
    import asyncio  # noqa: PLC0415 - --help need not load the client

    from mpijob_elastic.cli.jobs import get  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    if job and all_namespaces:
        raise typer.BadParameter("a job has one namespace: give it by -n", param_hint="-A")
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces)
    asyncio.run(get.get(where, job=job, output=output))

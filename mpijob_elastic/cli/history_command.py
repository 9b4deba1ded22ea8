"""`mpijob-elastic history`: what changed the number of a job's workers."""

import asyncio
from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Job, Kubeconfig, Namespace


def history(
    *,
    job: Job,
    namespace: Namespace = None,
    output: Annotated[
        Literal["table", "wide", "json", "yaml"], typer.Option("--output", "-o", help="Output format.")
    ] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what changed the number of a job's workers: when, why and by which program; the newest last.

    For example:

    - `mpijob-elastic history train -n ml`: the last 50 changes, how long each took, and ranks that it cut

    - `mpijob-elastic history mpijob/train -o wide`: times in full, with the date

    - `kubectl mpijob-elastic history train -o json`: the same for programs

    BY is the field manager, a program and not a person. LISTED and TRAINED tell after how long all workers were in
    discover_hosts.sh, and a rank was seen in each new one; `-` where that has not happened, or nobody looked.

    Exit codes: 0 done; 1 no such job, no changes yet, or no right to read them; 2 wrong usage; 4 no answer of the API
    server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import history  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    found = asyncio.run(history.history(where, job=job, output=output))
    raise typer.Exit(Exit.DONE if found else Exit.REFUSED)

"""`mpijob-elastic watch`."""

from typing import Annotated

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Kubeconfig, Namespace


def watch(
    *,
    job: Annotated[str, typer.Argument(help="The job to follow.", show_default=False)],
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
    import asyncio  # noqa: PLC0415 - --help need not load the client

    from mpijob_elastic.cli.jobs import watch  # noqa: PLC0415
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    succeeded = asyncio.run(watch.watch(where, job=job))
    raise typer.Exit(Exit.DONE if succeeded else Exit.REFUSED)

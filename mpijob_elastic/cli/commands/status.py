"""`mpijob-elastic status`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Output
from mpijob_elastic.cli.target import Where


@cluster_command()
async def status(
    *,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    where: Where,
) -> Exit:
    """Show the installation in one screen: versions, controller, webhook, certificates, and what is found beside.

    For example:

    - `mpijob-elastic status`: does it work here?

    - `mpijob-elastic status -n ml -o json`: the same for programs, asked in namespace ml

    Nothing is written: the webhook is asked by a dry run, in your namespace, or in another one if
    yours is left out of the webhook. A part that your account may not read is `-`, and a line below
    says which right is missing. Whether the cluster and its jobs need care, what `kubectl scale`
    lacks and your rights do not change the exit code.

    Exit codes: 0 works, or, for an account that may change no job, a controller leads; 1 not
    installed, does not cover your namespace, or does not work, also because an operator beside it
    resizes jobs itself; 2 wrong usage; 3 works, but something needs care: a replica that is not
    ready, versions that differ, a certificate that ends soon, no operator or one of an untested
    version; 4 not known, or no answer from the API server; 130 Ctrl-C.
    """
    return await work.status.status(where, output=output)

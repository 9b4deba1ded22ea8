"""`mpijob-elastic upgrade adopt` and `convert`: the commands for a job."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import change_commands as common
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Kubeconfig, Namespace
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter


def adopt(
    job: Annotated[str, typer.Argument(help="The MPIJob.", show_default=False)],
    *,
    namespace: Namespace = None,
    yes: common.Yes = False,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Make a running job elastic by recreating its launcher: training starts again from the last checkpoint.

    A job needs this if its launcher started before mpijob-elastic was installed, before the job was made elastic, or
    while the webhook was down; `mpijob-elastic explain` says so. To delete the pod instead makes the operator fail the
    job.

    For example:

    - `mpijob-elastic upgrade adopt train -n ml`: say what is lost, and ask

    Exit codes: 0 done, or not needed; 1 refused (not confirmed, no rights); 2 wrong usage; 4 not in time, or no answer
    of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.target import default_namespace, kubeconfig_file  # noqa: PLC0415
    from upgrade import adopt  # noqa: PLC0415 - --help need not load the client

    where = namespace or default_namespace(kubeconfig_file(kubeconfig), context)

    async def work(client: ApiWriter) -> None:
        def ask() -> bool:
            return yes or typer.confirm("Delete the launcher?")

        if not await adopt.adopt(client, where, job, ask=ask, say=common.tell, now=time.time(), timeout=timeout):
            say("Not confirmed: nothing was changed.", err=True)
            raise typer.Exit(Exit.REFUSED)
        say("Done.")

    common.run(work, kubeconfig, context)


def convert(
    source: Annotated[
        Path | None, typer.Argument(help="A file, a folder, or - for standard input.", show_default=False)
    ] = None,
    *,
    live: Annotated[
        str | None, typer.Option(metavar="KIND/NAME", help="A job in the cluster instead of a file.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="A folder to write to, with the names of the files.")] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Turn MPIJobs v1alpha2 and et-operator's TrainingJobs into elastic MPIJobs v1, as YAML.

    Objects of other kinds stay as they are. Each field without a counterpart is a line on standard error and a comment.

    For example:

    - `mpijob-elastic upgrade convert job.yaml > new.yaml`: convert a file

    - `mpijob-elastic upgrade convert jobs/ --output new/`: convert a folder and its subfolders

    - `mpijob-elastic upgrade convert --live trainingjob/mnist -n ml`: convert a job in the cluster

    Exit codes: 0 done; 1 refused (no YAML, not readable, no such job); 2 wrong usage; 4 no answer of the API server;
    130 Ctrl-C.
    """
    from upgrade.conversion import files  # noqa: PLC0415 - --help need not load the client

    complain = partial(say, err=True)
    if (source is None) == (live is None):
        raise typer.BadParameter("give either a file, a folder or -, or --live KIND/NAME", param_hint="SOURCE")
    if live is None:
        assert source is not None
        files.write(files.convert(source), output, say=complain)
        return

    async def work(client: ApiWriter) -> None:
        files.write([await files.convert_live(client, live, where)], output, say=complain)

    from mpijob_elastic.cli.target import default_namespace, kubeconfig_file  # noqa: PLC0415

    where = namespace or default_namespace(kubeconfig_file(kubeconfig), context)
    common.run(work, kubeconfig, context)

"""`mpijob-elastic upgrade`: commands for a cluster that runs mpi-operator v0.2.3 with live jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import typed
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.install import end, plan, run, tell
from mpijob_elastic.cli.options import (
    Context,
    DryRun,
    Kubeconfig,
    Managed,
    Namespace,
    Output,
    Overlays,
    StepTimeout,
    TemplateLabels,
    Yes,
)
from mpijob_elastic.cli.target import default_namespace, kubeconfig_file
from mpijob_elastic.install import Refused
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter
    from upgrade.findings import Report

app = typer.Typer(
    name="upgrade",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help=(
        "Check a cluster with live jobs before `install`, and change a job or the definition of "
        "MPIJobs."
    ),
)
_VERDICTS = {
    "GO": ("go", Exit.DONE),
    "CARE": ("go with care", Exit.OTHERWISE),
    "NO": ("no", Exit.REFUSED),
}


@app.command(cls=typed.Command)
def preflight(
    *,
    overlay: Overlays = None,
    jobs_namespace: Managed = None,
    template_labels: TemplateLabels = True,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check whether this cluster can become elastic, and what that means for each job.

    Nothing is written. Give the options that `install` will get. After an installation the command
    shows what does not work.

    For example:

    - `mpijob-elastic upgrade preflight`: show the findings and every job

    - `mpijob-elastic upgrade preflight -o json`: the same for programs

    Exit codes: 0 go; 1 no; 2 wrong usage; 3 go with care; 4 no answer from the API server; 130
    Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import table  # noqa: PLC0415 - --help need not load the client
    from upgrade import preflight as looking  # noqa: PLC0415

    wanted = plan(overlay, None, jobs_namespace, template_labels=template_labels)

    async def work(client: ApiWriter) -> None:
        report = await looking.look(client, wanted, now=time.time())
        say(*(table.serialized(report.data(), output) or _table(report)))
        raise typer.Exit(_VERDICTS[report.verdict.name][1])

    run(work, kubeconfig, context)


def _table(report: Report) -> list[str]:
    from mpijob_elastic.cli.jobs.table import columns  # noqa: PLC0415 - --help need not load the client

    found = [(one.topic, one.verdict.name.lower(), one.text) for one in report.findings]
    jobs = [(one.namespace, one.name, one.readiness, one.why) for one in report.jobs]
    lines = columns(("TOPIC", "VERDICT", "FOUND"), found)
    if jobs:
        lines += ["", *columns(("NAMESPACE", "JOB", "ELASTIC", "WHY"), jobs)]
    return [*lines, "", f"Verdict: {_VERDICTS[report.verdict.name][0]}"]


@app.command(cls=typed.Command)
def scale(
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Bring the recorded definition back.")
    ] = False,
    dry_run: DryRun = False,
    timeout: StepTimeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Add the scale subresource and columns to the definition of MPIJobs.

    With the subresource, `kubectl scale` and HPAs work. `install` adds it too. This command is for
    installations by kustomize, and for clusters where `install` left the subresource out.

    For example:

    - `mpijob-elastic upgrade scale`: record the definition, and add the subresource

    - `mpijob-elastic upgrade scale --remove`: bring the recorded definition back

    Exit codes: 0 done; 1 refused (no rights); 2 wrong usage; 4 not served in time, or no answer
    from the API server; 130 Ctrl-C.
    """
    from upgrade import record  # noqa: PLC0415 - --help need not load the client
    from upgrade import scale as subresource  # noqa: PLC0415

    news = partial(tell, dry_run=dry_run)

    async def work(client: ApiWriter) -> None:
        if not remove:
            note = await subresource.offer(client, dry_run=dry_run, seconds=timeout, say=news)
            say(*filter(None, [note]))
        elif await subresource.is_recorded(client):
            await subresource.take_back(client, dry_run=dry_run, say=news)
        else:
            raise Refused(
                f"there is no record of the definition (Secret {names.NAMESPACE}/{record.NAME}), "
                "so nothing is known to be ours; `kubectl edit crd mpijobs.kubeflow.org` changes "
                "it by hand"
            )

    run(work, kubeconfig, context)
    end(dry_run=dry_run, done="Removed." if remove else "MPIJobs can be scaled.")


@app.command(cls=typed.Command)
def adopt(
    job: Annotated[str, typer.Argument(help="The MPIJob.", show_default=False)],
    *,
    namespace: Namespace = None,
    yes: Yes = False,
    timeout: StepTimeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Make a running job elastic by recreating its launcher.

    Training starts again from the last checkpoint.

    A job needs this if its launcher started before mpijob-elastic was installed, before the job was
    made elastic, or while the webhook was down; `mpijob-elastic explain` says so. Deleting the pod
    instead makes the operator fail the job.

    For example:

    - `mpijob-elastic upgrade adopt train -n ml`: say what is lost, and ask

    Exit codes: 0 done, or not needed; 1 refused (not confirmed, no rights); 2 wrong usage; 4 not in
    time, or no answer from the API server; 130 Ctrl-C.
    """
    from upgrade import adopt  # noqa: PLC0415 - --help need not load the client

    where = namespace or default_namespace(kubeconfig_file(kubeconfig), context)

    async def work(client: ApiWriter) -> None:
        def ask() -> bool:
            return yes or typer.confirm("Delete the launcher?")

        if not await adopt.adopt(
            client, where, job, ask=ask, say=tell, now=time.time(), timeout=timeout
        ):
            say("Not confirmed: nothing was changed.", err=True)
            raise typer.Exit(Exit.REFUSED)
        say("Done.")

    run(work, kubeconfig, context)


@app.command(cls=typed.Command)
def convert(
    source: Annotated[
        Path | None,
        typer.Argument(help="A file, a folder, or - for standard input.", show_default=False),
    ] = None,
    *,
    live: Annotated[
        str | None,
        typer.Option(metavar="KIND/NAME", help="A job in the cluster instead of a file."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write to; files keep their names.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Turn MPIJobs v1alpha2 and et-operator's TrainingJobs into elastic MPIJobs v1, as YAML.

    Objects of other kinds stay as they are. What became of a field, and what is left to do, is a
    line on standard error and a comment. In a folder, a file without objects is skipped, and so
    is a patch for kustomize of a job of an old kind.

    For example:

    - `mpijob-elastic upgrade convert job.yaml > new.yaml`: convert a file

    - `mpijob-elastic upgrade convert jobs/ --output new/`: convert a folder and its subfolders

    - `mpijob-elastic upgrade convert --live trainingjob/mnist -n ml`: convert a job in the cluster

    Exit codes: 0 done; 1 refused (no YAML, not readable, no such job); 2 wrong usage; 3 done, but
    the lines with `to do` need you; 4 no answer from the API server; 130 Ctrl-C.
    """
    from upgrade import conversion_files as files  # noqa: PLC0415 - --help need not load the client

    complain = partial(say, err=True)
    if (source is None) == (live is None):
        raise typer.BadParameter(
            "give either a file, a folder or -, or --live KIND/NAME", param_hint="SOURCE"
        )
    if live is None:
        assert source is not None
        if not files.write(files.convert(source), output, say=complain):
            raise typer.Exit(Exit.OTHERWISE)
        return

    async def work(client: ApiWriter) -> None:
        found = await files.convert_live(client, live, where)
        if not files.write([found], output, say=complain):
            raise typer.Exit(Exit.OTHERWISE)

    where = namespace or default_namespace(kubeconfig_file(kubeconfig), context)
    run(work, kubeconfig, context)


# The commands of version 0.2.0 that are gone, and the commands that replace them.
_REPLACED = {
    "apply": f"{names.PROGRAM} install --canary NAMESPACE",
    "status": f"{names.PROGRAM} upgrade preflight",
    "rollback": f"{names.PROGRAM} uninstall --traces",
}


def _replaced(command: str) -> Callable[[], None]:
    def refuse() -> None:
        say(f"`{names.PROGRAM} upgrade {command}` is gone: use `{_REPLACED[command]}`", err=True)
        raise typer.Exit(Exit.USAGE)

    return refuse


for _command in _REPLACED:
    _anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name=_command, hidden=True, context_settings=_anything)(_replaced(_command))

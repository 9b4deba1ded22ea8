"""`mpijob-elastic upgrade preflight`, `apply`, `status` and `rollback`: the commands for a cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import change_commands as common
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Context, Kubeconfig, Output
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter
    from upgrade.findings import Report

_VERDICTS = {"GO": ("go", Exit.DONE), "CARE": ("go with care", Exit.OTHERWISE), "NO": ("no", Exit.REFUSED)}


def preflight(
    *,
    overlay: common.Overlays = None,
    jobs_namespace: common.JobsNamespaces = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check if this cluster can be upgraded, and the effect on each job. Nothing is written.

    Give the options that `upgrade apply` will get.

    For example:

    - `mpijob-elastic upgrade preflight`: show the findings and every job

    - `mpijob-elastic upgrade preflight -o json`: the same for programs

    Exit codes: 0 go; 1 no; 2 wrong usage; 3 go with care; 4 no answer of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import get  # noqa: PLC0415 - --help need not load the client
    from upgrade import preflight as looking  # noqa: PLC0415

    plan = common.plan(overlay, None, jobs_namespace)

    async def work(client: ApiWriter) -> None:
        report = await looking.look(client, plan, now=time.time())
        write = get.WRITERS.get(output)
        say(*(write(report.data()).split("\n") if write else _table(report)))
        raise typer.Exit(_VERDICTS[report.verdict.name][1])

    common.run(work, kubeconfig, context)


def apply(
    *,
    overlay: common.Overlays = None,
    jobs_namespace: common.JobsNamespaces = None,
    uncover: common.Uncover = False,
    image: common.Image = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
    structural: Annotated[bool, typer.Option("--structural", hidden=True)] = False,
    force_conflicts: common.ForceConflicts = False,
    wait: common.Wait = True,
    canary: Annotated[bool, typer.Option(help="Verify the upgrade with a job that is created and removed.")] = True,
    canary_namespace: Annotated[
        str | None, typer.Option(help="The namespace of that job; by default a new namespace.")
    ] = None,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what would change, ask, record the state before, and make the cluster elastic.

    The definition of MPIJobs gets a scale subresource and columns; controller and webhook are installed. Run an
    interrupted command again to finish it.

    For example:

    - `mpijob-elastic upgrade apply --image REPOSITORY/mpijob-elastic:0.2.0 --dry-run`: show the difference of every
      object

    - `mpijob-elastic upgrade apply --overlay prometheus --yes`: without confirmation, with the image that runs

    Exit codes: 0 done; 1 refused (no rights, declined); 2 wrong usage; 4 not ready in time (the canary included), or no
    answer of the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client
    from upgrade import apply, crd  # noqa: PLC0415
    from upgrade import canary as canaries  # noqa: PLC0415

    if structural:
        raise typer.BadParameter(f"this is gone: apply {crd.IN_V1} instead", param_hint="--structural")
    plan = common.plan(overlay, image, jobs_namespace)
    how = installer.Options(dry_run=dry_run, force=force_conflicts, uncover=uncover, wait=wait, timeout=timeout)
    where = canary_namespace or next(iter(plan.jobs_namespaces), canaries.NAMESPACE)
    trial = canaries.Canary(namespace=where, timeout=timeout) if canary else None
    options = apply.Options(install=how, canary=trial)

    async def work(client: ApiWriter) -> None:
        ask = common.asking(f"Apply this to {client.host}?", yes=yes)
        confirmed = await apply.apply(client, plan, options, ask=ask, say=common.tell)
        common.end(confirmed=confirmed, dry_run=dry_run, done="Upgraded.")

    common.run(work, kubeconfig, context)


def status(*, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show the progress of an upgrade, and what is missing.

    For example:

    - `mpijob-elastic upgrade status`: show phase, definition and objects

    Exit codes: 0 complete; 1 no upgrade, or no rights; 2 wrong usage; 3 begun, not complete; 4 no answer of the API
    server; 130 Ctrl-C.
    """
    from upgrade import status  # noqa: PLC0415 - --help need not load the client

    async def work(client: ApiWriter) -> None:
        found = await status.look(client)
        say(*found.lines())
        if not found.complete:
            raise typer.Exit(Exit.OTHERWISE if found.begun else Exit.REFUSED)

    common.run(work, kubeconfig, context)


def rollback(
    *,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Roll an upgrade back: definition and objects become what they were; jobs run on.

    Keys that a live launcher mounts stay in the ConfigMap of its job. Run this again when those jobs have ended.

    For example:

    - `mpijob-elastic upgrade rollback --dry-run`: show what would change

    - `mpijob-elastic upgrade rollback --yes`: without confirmation

    Exit codes: 0 done; 1 refused (no rights, declined); 2 wrong usage; 4 not gone in time, or no answer of the API
    server; 130 Ctrl-C.
    """
    from upgrade import rollback  # noqa: PLC0415 - --help need not load the client

    async def work(client: ApiWriter) -> None:
        ask = common.asking(f"Roll this back on {client.host}?", yes=yes)
        confirmed = await rollback.rollback(client, ask=ask, dry_run=dry_run, timeout=timeout, say=common.tell)
        common.end(confirmed=confirmed, dry_run=dry_run, done="Rolled back.")

    common.run(work, kubeconfig, context)


def _table(report: Report) -> list[str]:
    from mpijob_elastic.cli.jobs.table import columns  # noqa: PLC0415 - --help need not load it

    found = [(one.topic, one.verdict.name.lower(), one.text) for one in report.findings]
    jobs = [(one.namespace, one.name, one.readiness, one.why) for one in report.jobs]
    lines = columns(("TOPIC", "VERDICT", "FOUND"), found)
    if jobs:
        lines += ["", *columns(("NAMESPACE", "JOB", "ELASTIC", "WHY"), jobs)]
    return [*lines, "", f"Verdict: {_VERDICTS[report.verdict.name][0]}"]

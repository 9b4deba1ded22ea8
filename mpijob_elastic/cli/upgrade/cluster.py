"""`mpijob-elastic upgrade preflight`, `apply`, `status` and `rollback`: what is done to a cluster."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mpijob_elastic.cli.options import Context, Kubeconfig
from mpijob_elastic.cli.upgrade import common
from mpijob_elastic.cli.upgrade.common import DryRun, Timeout, Yes
from mpijob_elastic.install.overlays import Overlay

if TYPE_CHECKING:
    from mpijob_elastic.install.installer import Plan
    from mpijob_elastic.kube.writer import ApiWriter
    from upgrade.findings import Report

WITH_CARE = 3
NO = 4

Output = Literal["table", "json", "yaml"]
_VERDICTS = {0: "go", WITH_CARE: "go with care", NO: "no"}


def preflight(
    *,
    overlay: Annotated[list[Overlay] | None, typer.Option(help="As `upgrade apply` will be given.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="As `upgrade apply` will be given.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Look whether this cluster can be upgraded and what that means for each job; nothing is written.

    For example:

    - `mpijob-elastic upgrade preflight`: what was found, and every job

    - `mpijob-elastic upgrade preflight -o json`: the same for programs

    Exit codes: 0 go; 1 not to be had (no cluster); 2 wrong usage; 3 go with care; 4 no.
    """
    from upgrade import preflight as looking  # noqa: PLC0415 - --help need not load the client

    plan = _plan(overlay, None, namespace)

    async def work(client: ApiWriter) -> None:
        report = await looking.look(client, plan, now=time.time())
        typer.echo(_rendered(report, output), nl=False)
        if report.verdict:
            raise typer.Exit(report.verdict)

    common.run(work, kubeconfig, context)


def apply(
    *,
    overlay: Annotated[list[Overlay] | None, typer.Option(help="May be given several times.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Whose jobs to look after, with --overlay single-namespace.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Image to run; by default the one of the manifests.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    structural: Annotated[
        bool,
        typer.Option(
            "--structural", help="Give a definition from before apiextensions v1 a schema of v1; there is no way back."
        ),
    ] = False,
    force_conflicts: Annotated[
        bool, typer.Option("--force-conflicts", help="Overrule fields of our objects that somebody else has changed.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until all replicas are ready and trusted.")] = True,
    canary: Annotated[bool, typer.Option(help="Verify by a job that is created and removed.")] = True,
    canary_namespace: Annotated[
        str | None, typer.Option(help="Where that job runs; by default a namespace of its own.")
    ] = None,
    timeout: Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what would change, ask, write down what was there, and make the cluster elastic.

    The definition of MPIJobs gets a scale subresource and columns; controller and webhook are installed. Whatever was
    interrupted is finished by running the same command again.

    For example:

    - `mpijob-elastic upgrade apply --dry-run`: the difference of every object

    - `mpijob-elastic upgrade apply --overlay prometheus --yes`: without asking

    Exit codes: 0 done; 1 not (refused, no rights, not confirmed, the canary failed); 2 wrong usage; 130 interrupted.
    """
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client
    from upgrade import apply  # noqa: PLC0415
    from upgrade import canary as canaries  # noqa: PLC0415

    plan = _plan(overlay, image, namespace)
    how = installer.Options(dry_run=dry_run, force=force_conflicts, wait=wait, timeout=timeout)
    options = apply.Options(install=how, structural=structural)
    if canary:
        options = replace(
            options, canary=canaries.of(plan.manifests(), namespace=canary_namespace or namespace, timeout=timeout)
        )

    async def work(client: ApiWriter) -> None:
        ask = common.asking(f"Apply this to {client.host}?", yes=yes)
        confirmed = await apply.apply(client, plan, options, ask=ask, say=common.say)
        _end(confirmed=confirmed, dry_run=dry_run, done="Upgraded.")

    common.run(work, kubeconfig, context)


def status(*, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Say how far an upgrade is, and what is missing.

    For example:

    - `mpijob-elastic upgrade status`: phase, definition, objects

    Exit codes: 0 complete; 1 not to be had (no rights, no cluster); 2 wrong usage; 3 begun, not complete; 4 none.
    """
    from upgrade import status  # noqa: PLC0415 - --help need not load the client

    async def work(client: ApiWriter) -> None:
        found = await status.look(client)
        for line in found.lines():
            typer.echo(line)
        if not found.complete:
            raise typer.Exit(WITH_CARE if found.begun else NO)

    common.run(work, kubeconfig, context)


def rollback(
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
    timeout: Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Take an upgrade back: definition and objects become what they were; jobs run on.

    What a live launcher mounts stays in its job's ConfigMap; run this again when those jobs have ended.

    For example:

    - `mpijob-elastic upgrade rollback --dry-run`: what would become of each object

    - `mpijob-elastic upgrade rollback --yes`: without asking

    Exit codes: 0 done; 1 not (refused, no rights, not confirmed, not gone in time); 2 wrong usage; 130 interrupted.
    """
    from upgrade import rollback  # noqa: PLC0415 - --help need not load the client

    async def work(client: ApiWriter) -> None:
        ask = common.asking(f"Take this back on {client.host}?", yes=yes)
        confirmed = await rollback.rollback(client, ask=ask, dry_run=dry_run, timeout=timeout, say=common.say)
        _end(confirmed=confirmed, dry_run=dry_run, done="Rolled back.")

    common.run(work, kubeconfig, context)


def _plan(overlay: list[Overlay] | None, image: str | None, namespace: str | None) -> Plan:
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client

    try:
        return installer.Plan(overlays=tuple(overlay or ()), image=image, jobs_namespace=namespace)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--namespace") from None


def _rendered(report: Report, output: Output) -> str:
    import msgspec  # noqa: PLC0415 - --help need not load them
    import yaml  # noqa: PLC0415

    if output == "json":
        return msgspec.json.format(msgspec.json.encode(report.data())).decode() + "\n"
    return str(yaml.safe_dump(report.data(), sort_keys=False)) if output == "yaml" else _table(report)


def _table(report: Report) -> str:
    from mpijob_elastic.cli.jobs.table import columns  # noqa: PLC0415 - --help need not load it

    found = [(one.topic, one.verdict.name.lower(), one.text) for one in report.findings]
    jobs = [(one.namespace, one.name, one.readiness, one.why) for one in report.jobs]
    lines = columns(("TOPIC", "VERDICT", "FOUND"), found)
    if jobs:
        lines += ["", *columns(("NAMESPACE", "JOB", "ELASTIC", "WHY"), jobs)]
    return "\n".join([*lines, "", f"Verdict: {_VERDICTS[report.verdict]}"]) + "\n"


def _end(*, confirmed: bool, dry_run: bool, done: str) -> None:
    if not confirmed:
        common.not_confirmed()
    typer.echo("Dry run: nothing was written." if dry_run else done)

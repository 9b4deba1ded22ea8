"""`mpijob-elastic upgrade preflight`."""

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
    """Check if this cluster can become elastic, and the effect on each job. Nothing is written.

    Give the options that `install` will get. After an installation the command shows what does not work.

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


def _table(report: Report) -> list[str]:
    from mpijob_elastic.cli.jobs.table import columns  # noqa: PLC0415 - --help need not load it

    found = [(one.topic, one.verdict.name.lower(), one.text) for one in report.findings]
    jobs = [(one.namespace, one.name, one.readiness, one.why) for one in report.jobs]
    lines = columns(("TOPIC", "VERDICT", "FOUND"), found)
    if jobs:
        lines += ["", *columns(("NAMESPACE", "JOB", "ELASTIC", "WHY"), jobs)]
    return [*lines, "", f"Verdict: {_VERDICTS[report.verdict.name][0]}"]

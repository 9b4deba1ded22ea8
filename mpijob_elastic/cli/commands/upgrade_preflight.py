"""`mpijob-elastic upgrade preflight`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import INTERRUPTED, connected, plan
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.install_options import Managed, Overlays
from mpijob_elastic.cli.options import Output, TemplateLabels
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from upgrade.findings import Report


_ENDS = {"GO": Exit.DONE, "CARE": Exit.OTHERWISE, "NO": Exit.REFUSED}


@cluster_command(namespace=False, interrupted=INTERRUPTED)
async def preflight(
    *,
    overlay: Overlays = None,
    jobs_namespace: Managed = None,
    template_labels: TemplateLabels = True,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
    where: Where,
) -> Exit:
    """Check whether this cluster can become elastic, and what that means for each job.

    Nothing is written. Give the options that `install` will get. After an installation the command
    shows what does not work.

    For example:

    - `mpijob-elastic upgrade preflight`: show the findings and every job

    - `mpijob-elastic upgrade preflight -o json`: the same for programs

    Exit codes: 0 go; 1 no; 2 wrong usage; 3 go with care; 4 no answer from the API server; 130
    Ctrl-C.
    """
    wanted = plan(overlay, None, jobs_namespace, template_labels=template_labels)

    async with connected(where) as client:
        report = await work.preflight.look(client, wanted, now=time.time())
        say(*(work.table.serialized(report.data(), output) or _table(report)))
        return _ENDS[report.verdict.name]


def _table(report: Report) -> list[str]:
    found = [(one.topic, one.verdict.name.lower(), one.text) for one in report.findings]
    jobs = [(one.namespace, one.name, one.readiness, one.why) for one in report.jobs]
    lines = work.table.columns(("TOPIC", "VERDICT", "FOUND"), found)
    if jobs:
        lines += ["", *work.table.columns(("NAMESPACE", "JOB", "ELASTIC", "WHY"), jobs)]
    return [*lines, "", f"Verdict: {report.verdict.words}"]

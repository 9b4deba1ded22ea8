"""`status`: read the installation, judge it, and print it in one screen."""

import time

from mpijob_elastic.cli.connection import namespace_of, reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.installation import reading
from mpijob_elastic.cli.installation.parts import InstallationReport, judged
from mpijob_elastic.cli.jobs import table
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.terminal import say

_HEADER = ("PART", "STATE", "FOUND")


async def status(where: Where, *, output: str) -> Exit:
    """Print the installation; return whether it works. Raises `errors.KubeError`."""
    now = time.time()
    async with reached(where) as (client, namespace):
        facts = await reading.read(client, namespace or namespace_of(where), now=now)
    report = judged(facts, now=now)
    say(*(table.serialized(report, output) or lines(report)))
    return report.exit_code


def lines(report: InstallationReport) -> list[str]:
    """Return the report as a page."""
    found = [(one.part, str(one.state), one.found) for one in report.parts]
    page = table.columns(_HEADER, found)
    if report.missing_rights:
        page += ["", *(f"Not shown: {one}." for one in report.missing_rights)]
    return [*page, "", report.last]

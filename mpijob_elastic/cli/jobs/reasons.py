"""Print an explanation as text."""

import textwrap
from collections.abc import Iterator

from mpijob_elastic.explain.findings import Explanation, Finding, Level

# Text is wrapped at so many columns, whatever the terminal: it is read in logs and mails too.
WIDTH = 110
_INDENT = "    "


def text(report: Explanation) -> list[str]:
    """Return the lines of a page, a paragraph for each finding."""
    counts = f", {report.training} of {report.desired} workers train" if report.workers else ""
    lines = [f"{report.namespace}/{report.name}: {report.state}{counts}"]
    for finding in report.job:
        lines += ["", *_paragraph(finding)]
    for worker in report.workers:
        is_renamed = worker.host not in {"", worker.name}
        lines += ["", *_paragraph(worker.cause, host=worker.host if is_renamed else "")]
    if report.notices:
        lines += ["", "Notices of the controller:", *(f"{_INDENT}{notice}" for notice in report.notices)]
    return lines


def _paragraph(finding: Finding, *, host: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        finding.says, WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    if host:
        yield f"{_INDENT}host name: {host}"
    if finding.level is not Level.FINE:
        yield f"{_INDENT}cause: {finding.cause}"
    if finding.next_step:
        yield f"{_INDENT}next: {finding.next_step}"

"""Print an explanation as text."""

import textwrap
from collections import Counter
from collections.abc import Iterator

from mpijob_elastic.explain.findings import Explanation, Finding, Level

# Text is wrapped at so many columns, whatever the terminal: it is read in logs and mails too.
WIDTH = 110
_INDENT = "    "


def text(report: Explanation) -> list[str]:
    """Return the lines of a page, a paragraph for each finding."""
    lines = _wrapped(f"{report.namespace}/{report.name}: {report.state}{_counts(report)}")
    for finding in report.job:
        lines += ["", *_paragraph(finding)]
    for worker in report.workers:
        is_renamed = worker.host not in {"", worker.name}
        lines += ["", *_paragraph(worker.cause, host=worker.host if is_renamed else "")]
    said = " ".join(finding.says for finding in (*report.job, *(worker.cause for worker in report.workers)))
    notices = [notice for notice in report.notices if notice.partition(": ")[2] not in said]
    if notices:
        lines += ["", "Notices of the controller:", *(f"{_INDENT}{notice}" for notice in notices)]
    return lines


def _counts(report: Explanation) -> str:
    levels = Counter(worker.cause.level for worker in report.workers if worker.wanted)
    training, unseen = levels[Level.FINE], levels[Level.UNKNOWN]
    if not levels or report.desired is None or levels.total() < report.desired:  # asked about one of them
        return ""
    said = "workers train" if training or not unseen else "listed"
    rest = f"; whether {'the others' if training else 'they'} train is not known: {report.not_known}" if unseen else ""
    return f", {training or unseen} of {report.desired} {said}{rest}"


def _paragraph(finding: Finding, *, host: str = "") -> Iterator[str]:
    yield from _wrapped(finding.says)
    if host:
        yield f"{_INDENT}host name: {host}"
    if finding.level is not Level.FINE:
        yield f"{_INDENT}cause: {finding.cause}"
    if finding.next_step:
        yield f"{_INDENT}next: {finding.next_step}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)

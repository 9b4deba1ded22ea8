"""Print an explanation: as an object for programs, and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from mpijob_elastic.explain.findings import Explanation, Finding, Level, WorkerFinding
from mpijob_elastic.model.job import JobView

# Text is wrapped at so many columns, whatever the terminal: it is read in logs and mails too.
WIDTH = 110
_INDENT = "    "


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The explanation of a job, and the controller's notices on it. training: wanted workers that train."""

    namespace: str
    name: str
    state: str
    desired: int
    training: int
    all_train: bool
    job: tuple[Finding, ...]
    workers: tuple[WorkerFinding, ...]
    notices: list[str]


def build(view: JobView, explanation: Explanation, *, state: str) -> Report:
    """Return the report on a job, or on some workers of it."""
    return Report(
        namespace=view.namespace,
        name=view.name,
        state=state,
        desired=view.replicas,
        training=explanation.training,
        all_train=explanation.all_train,
        job=explanation.job,
        workers=explanation.workers,
        notices=view.notices.splitlines(),
    )


def text(report: Report) -> list[str]:
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

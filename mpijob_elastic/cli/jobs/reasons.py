"""An explanation as it is printed: for programs, and as text. Field names are camelCase in JSON and YAML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from mpijob_elastic.explain.findings import Explanation, Finding
from mpijob_elastic.model.job import JobView

# The text of a cause is wrapped at so many columns, whatever the terminal: it is read in logs and mails too.
WIDTH = 110
_INDENT = "    "


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what is printed."""


class Cause(_Part, frozen=True):
    """One cause. level: fine, waiting or wrong; next_step: a command, "" where none helps."""

    cause: str
    level: str
    says: str
    next_step: str


class WorkerCause(_Part, frozen=True):
    """Of one worker. host: under which name discover_hosts.sh has it, "" where it has not; wanted: by the size."""

    name: str
    host: str
    wanted: bool
    cause: Cause


class Report(_Part, frozen=True):
    """What is said of a job. training: wanted workers that train, as far as can be seen; notices: the controller's."""

    namespace: str
    name: str
    state: str
    desired: int
    training: int
    all_train: bool
    job: list[Cause]
    workers: list[WorkerCause]
    notices: list[str]


def build(view: JobView, explanation: Explanation, *, state: str) -> Report:
    """The report on a job, or on some workers of it."""
    return Report(
        namespace=view.namespace,
        name=view.name,
        state=state,
        desired=view.replicas,
        training=explanation.training,
        all_train=explanation.all_train,
        job=[_cause(finding) for finding in explanation.job],
        workers=[
            WorkerCause(
                name=one.worker, host=view.host_of.get(one.worker, ""), wanted=one.wanted, cause=_cause(one.finding)
            )
            for one in explanation.workers
        ],
        notices=view.notices.splitlines(),
    )


def text(report: Report) -> list[str]:
    """A page."""
    counts = f", {report.training} of {report.desired} workers train" if report.workers else ""
    lines = [f"{report.namespace}/{report.name}: {report.state}{counts}"]
    for cause in report.job:
        lines += ["", *_paragraph(cause, "")]
    for worker in report.workers:
        called = f" (as {worker.host})" if worker.host not in ("", worker.name) else ""
        lines += ["", f"{worker.name}{called}", *_paragraph(worker.cause, _INDENT)]
    if report.notices:
        lines += ["", "The controller says:", *(f"{_INDENT}{notice}" for notice in report.notices)]
    return lines


def _cause(finding: Finding) -> Cause:
    return Cause(cause=finding.cause, level=finding.level, says=finding.says, next_step=finding.next_step)


def _paragraph(cause: Cause, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{cause.cause}: {cause.says}",
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if cause.next_step:
        yield f"{indent}next: {cause.next_step}"

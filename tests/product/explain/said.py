"""What is said of a job, as the tests ask for it."""

from __future__ import annotations

from typing import Any

from mpijob_elastic.explain import explain
from mpijob_elastic.explain.facts import Facts, Look
from mpijob_elastic.explain.findings import Finding
from mpijob_elastic.model.job import JobView
from tests.builders import NOW, pods

BUSY, IDLE = Look(processes=("python3",)), Look()


def of_worker(view: JobView, index: int, **facts: Any) -> Finding:
    """The one cause of that worker."""
    explanation = explain(view, Facts(**facts), now=NOW)
    [pod] = pods(index)
    [found] = [one.finding for one in explanation.workers if one.worker == pod]
    return found


def of_job(view: JobView, **facts: Any) -> dict[str, Finding]:
    """What holds for the job, by cause."""
    found = explain(view, Facts(**facts), now=NOW).job
    by_cause = {finding.cause: finding for finding in found}
    assert len(by_cause) == len(found)
    return by_cause

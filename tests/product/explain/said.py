"""Shorthands for explanations in tests."""

from typing import Any

from mpijob_elastic.explain import explain
from mpijob_elastic.explain.facts import Facts, Look
from mpijob_elastic.explain.findings import Finding
from mpijob_elastic.model.job import JobView
from tests.builders import NOW, pods

BUSY, IDLE = Look(processes=("python3",)), Look()


def of_worker(view: JobView, index: int, **facts: Any) -> Finding:
    """Return the cause of that worker."""
    explanation = explain(view, Facts(**facts), now=NOW)
    [pod] = pods(index)
    [found] = [worker.cause for worker in explanation.workers if worker.name == pod]
    return found


def of_job(view: JobView, **facts: Any) -> dict[str, Finding]:
    """Return the findings on the job, by cause."""
    found = explain(view, Facts(**facts), now=NOW).job
    by_cause = {finding.cause: finding for finding in found}
    assert len(by_cause) == len(found)
    return by_cause

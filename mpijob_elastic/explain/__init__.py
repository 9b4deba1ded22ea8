"""Explain why a worker is not training and what to do next. Pure: one view of a job and some more facts in, words out.

The job gets every finding that holds. Each worker gets the first cause that holds, checked in the order in which a
worker comes to train: its pod, the Role, the host list, the launcher, its rank.
"""

from __future__ import annotations

from mpijob_elastic.explain import jobs, workers
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Explanation
from mpijob_elastic.model.job import JobView

__all__ = ["explain"]


def explain(view: JobView, facts: Facts, *, now: float) -> Explanation:
    """Explain a job at time `now` (seconds since the epoch)."""
    over = jobs.over(view, facts, now=now)
    if over:
        return Explanation(job=(over,))
    return Explanation(
        job=tuple(jobs.findings(view, facts, now=now)), workers=tuple(workers.findings(view, facts, now=now))
    )

"""Why a worker is not training, in words, with the next step: from one view of a job and what else was found out. Pure.

For the job as a whole everything that holds is said, for each worker the first cause that holds, in the order in which
a worker comes to train: its pod, the Role, the host list, the launcher, its rank.
"""

from __future__ import annotations

from mpijob_elastic.explain import jobs, workers
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Explanation
from mpijob_elastic.model.job import JobView

__all__ = ["explain"]


def explain(view: JobView, facts: Facts, *, now: float) -> Explanation:
    """What is to be said of a job at time `now` (seconds since the epoch)."""
    over = jobs.over(view, facts, now=now)
    if over:
        return Explanation(job=over)
    return Explanation(
        job=tuple(jobs.findings(view, facts, now=now)), workers=tuple(workers.findings(view, facts, now=now))
    )

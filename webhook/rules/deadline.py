"""Deadlines: growing a job that ends soon is of no use; pure.

An object tells one deadline: [operator] leaves activeDeadlineSeconds in the launcher's template, and the kubelet counts
it from the pod's start, which is never before the job's. v0.2.3 does not act on `runPolicy`.
"""

from __future__ import annotations

from mpijob_elastic.model import durations
from mpijob_elastic.model.job_facts import JobFacts

# Seconds. A new worker takes minutes to be scheduled, pull its image and join, and then has to pay off.
SOON = 600.0


def soon(job: JobFacts, *, now: float) -> str | None:
    """Return when the job ends, in words, if that is soon."""
    if job.deadline is None:
        return None
    age = max(0.0, now - job.started_at) if job.started_at is not None else 0.0
    left = max(0.0, job.deadline - age)
    return f"its launcher's activeDeadlineSeconds ends it in {durations.render(round(left))}" if left < SOON else None


def growth(job: JobFacts, *, before: int, after: int, now: float) -> tuple[str, ...]:
    """Return a warning if the job grows although it ends soon."""
    end = soon(job, now=now) if after > before and job.reported else None
    return (f"new workers may come too late for this job: {end}",) if end else ()

"""Whether a job is near its end, so that growing it is of no use; pure.

The one end that an object tells: [operator] leaves activeDeadlineSeconds in the launcher's template, and the kubelet
ends the pod by it, counted from the pod's start; that is never before the job's. On `runPolicy` v0.2.3 does not act.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mpijob_elastic.model import durations
from webhook.rules.job_size import JobSize

# Seconds. A worker that has to be scheduled, to pull its image and to join takes minutes, and it must pay off.
SOON = 600.0


def soon(job: JobSize, *, now: datetime) -> str | None:
    """When it ends, in words, where that is soon."""
    if job.deadline is None:
        return None
    left = max(0.0, job.deadline - _age(job.started_at, now))
    if left >= SOON:
        return None
    return f"activeDeadlineSeconds of its launcher ends it in {durations.render(round(left))}"


def growth(job: JobSize, *, before: int, after: int, now: datetime) -> tuple[str, ...]:
    """What is to be said where the job grows though it ends soon."""
    end = soon(job, now=now) if after > before and job.started else None
    return (f"new workers may be of no use: {end}",) if end else ()


def _age(started_at: str | None, now: datetime) -> float:
    try:
        started = datetime.fromisoformat(started_at) if started_at else now
    except ValueError:
        return 0.0
    return max(0.0, (now - (started if started.tzinfo else started.replace(tzinfo=UTC))).total_seconds())

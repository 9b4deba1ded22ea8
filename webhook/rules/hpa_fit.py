"""What does not fit between a HPA and its MPIJob, told to whoever creates or changes either of them; pure.

Nothing of it is refused: both may be right in a moment, when the other one follows. A scale out of bounds is refused,
not cut to the bound, so such a HPA does nothing at all as long as it asks for it (kube-controller-manager's
podautoscaler/horizontal.go, FailedUpdateScale).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from mpijob_elastic import names
from webhook.rules import deadline, preview
from webhook.rules.hpa_facts import HpaFacts
from webhook.rules.job_size import JobSize

# Of a HPA's name, so that a warning stays one line.
_NAMED = 24


def of_job(job: JobSize, autoscalers: Sequence[HpaFacts], *, now: datetime) -> Iterator[str]:
    """What is to be said of a job and of all HPAs that scale it."""
    yield from _rivals(autoscalers)
    for one in autoscalers:
        yield from (f"HPA {_name(one)}: {text}" for text in _doubts(job, one, now))


def of_autoscaler(
    autoscaler: HpaFacts, *, there: Sequence[HpaFacts], job: JobSize | None, now: datetime
) -> Iterator[str]:
    """What is to be said of a HPA. there: all of its job, itself as it was perhaps among them."""
    yield from _rivals([autoscaler, *(one for one in there if one.metadata.name != autoscaler.metadata.name)])
    if job is not None and not job.deleting:
        yield from (f"HPA {_name(autoscaler)}: {text}" for text in _doubts(job, autoscaler, now))


def new(after: Iterable[str], before: Iterable[str]) -> tuple[str, ...]:
    """What an update brings in."""
    known = set(before)
    return tuple(one for one in after if one not in known)


def _rivals(autoscalers: Sequence[HpaFacts]) -> Iterator[str]:
    # The condition ScalingActive of both becomes False.
    if len(autoscalers) > 1:
        both = " and ".join(sorted(_name(one) for one in autoscalers)[:2])
        yield f"HPAs {both} scale the same job, so neither will (AmbiguousSelector): delete one"


def _doubts(job: JobSize, autoscaler: HpaFacts, now: datetime) -> Iterator[str]:
    if job.finished:
        yield "the job has finished, so every scale is refused: delete it"
        return
    yield from _bounds(job, autoscaler)
    if not job.elastic:
        yield "this job is not elastic, so new workers stay unused and surplus ones keep running"
    yield from dict.fromkeys(
        (*preview.doubts(job, autoscaler.min_replicas), *preview.doubts(job, autoscaler.max_replicas))
    )
    soon = deadline.soon(job, now=now)
    if soon and job.replicas < autoscaler.max_replicas:
        yield f"it may still grow this job, but {soon}"


def _bounds(job: JobSize, autoscaler: HpaFacts) -> Iterator[str]:
    low, high = job.policy.min_replicas, job.policy.max_replicas
    most, fewest = autoscaler.max_replicas, autoscaler.min_replicas
    if job.policy.enabled is False:
        return
    if high is not None and most > high:
        yield f"maxReplicas {most} is above {names.MAX_REPLICAS} ({high}): more is refused, not cut to {high}"
    if low is not None and fewest < low:
        yield f"minReplicas {fewest} is below {names.MIN_REPLICAS} ({low}): less is refused, not raised to {low}"


def _name(autoscaler: HpaFacts) -> str:
    name = autoscaler.metadata.name or "(new)"
    return name if len(name) <= _NAMED else f"{name[: _NAMED - 1]}…"

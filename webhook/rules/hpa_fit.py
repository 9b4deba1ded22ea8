"""Warn if an HPA and its MPIJob do not fit; pure.

Nothing is refused, because an edit of the other object may follow. A scale out of bounds is refused, not cut to the
bound, so an HPA that asks for it does nothing (kube-controller-manager's podautoscaler/horizontal.go,
FailedUpdateScale).
"""

from collections.abc import Iterator, Sequence

from mpijob_elastic import names
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import size
from webhook.rules.hpa_facts import HpaFacts

# Characters of an HPA's name, so that a warning stays one line.
_NAMED = 24


def of_job(job: JobFacts, autoscalers: Sequence[HpaFacts]) -> Iterator[str]:
    """Yield the warnings about a job and all HPAs that scale it."""
    yield from _rivals(autoscalers)
    for autoscaler in autoscalers:
        yield from (f"HPA {_name(autoscaler)}: {text}" for text in _doubts(job, autoscaler))


def of_autoscaler(autoscaler: HpaFacts, *, there: Sequence[HpaFacts], job: JobFacts | None) -> Iterator[str]:
    """Yield the warnings about an HPA. there: all HPAs of its job, perhaps with an older version of itself."""
    yield from _rivals([autoscaler, *(other for other in there if other.metadata.name != autoscaler.metadata.name)])
    if job is not None and not job.deleting:
        yield from (f"HPA {_name(autoscaler)}: {text}" for text in _doubts(job, autoscaler))


def _rivals(autoscalers: Sequence[HpaFacts]) -> Iterator[str]:
    # The condition ScalingActive of both becomes False.
    if len(autoscalers) > 1:
        both = " and ".join(sorted(map(_name, autoscalers))[:2])
        yield f"HPAs {both} scale the same job, so neither works (AmbiguousSelector): delete one of them"


def _doubts(job: JobFacts, autoscaler: HpaFacts) -> Iterator[str]:
    if job.finished:
        yield "the job has finished, so every scale is refused: delete the HPA"
        return
    yield from _bounds(job, autoscaler)
    if not job.elastic:
        yield "this job is not elastic, so new workers stay unused and surplus workers keep running"
    sizes = autoscaler.min_replicas, autoscaler.spec.max_replicas
    yield from dict.fromkeys(doubt for replicas in sizes for doubt in size.doubts(job, replicas))


def _bounds(job: JobFacts, autoscaler: HpaFacts) -> Iterator[str]:
    low, high = size.bounds(job)
    if autoscaler.spec.max_replicas > high:
        over = f"maxReplicas {autoscaler.spec.max_replicas} is above {size.largest(job)}"
        yield f"{over}: more is refused, not cut to {high}"
    if autoscaler.min_replicas < low:
        under = f"minReplicas {autoscaler.min_replicas} is below {names.MIN_REPLICAS} ({low})"
        yield f"{under}: less is refused, not raised to {low}"


def _name(autoscaler: HpaFacts) -> str:
    name = autoscaler.metadata.name or "(new)"
    return name if len(name) <= _NAMED else f"{name[: _NAMED - 1]}…"

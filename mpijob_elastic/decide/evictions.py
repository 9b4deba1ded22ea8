"""Evictions: a worker that somebody tries to evict leaves like a worker on a node that goes (see disruption).

But it is not ours to delete. Whoever evicts tries again by the pod's name: were the pod replaced meanwhile, its
successor would be evicted. So once it has drained it is released, and the next try may delete it. A mark that nobody
follows up ends by its time, and the worker is listed again.
"""

from dataclasses import replace

import msgspec

from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker


def judged(view: JobView, *, now: float) -> JobView:
    """Return the view with each live eviction as a disruption, and without those that are over."""
    return replace(view, workers=tuple(_judged(view, worker, now=now) for worker in view.workers))


def _judged(view: JobView, worker: Worker, *, now: float) -> Worker:
    facts = worker.facts
    if facts.eviction is None:
        return worker
    if not facts.eviction.is_live(drain_timeout=view.policy.drain_timeout, now=now):
        return replace(worker, facts=msgspec.structs.replace(facts, eviction=None))
    return replace(worker, facts=msgspec.structs.replace(facts, disruption=facts.disruption or "an eviction"))


def end(view: JobView) -> float | None:
    """Return when the next mark of a judged view is over."""
    limit = view.policy.drain_timeout
    return min(
        (pod.facts.eviction.ends_at(drain_timeout=limit) for pod in view.workers if pod.facts.eviction), default=None
    )

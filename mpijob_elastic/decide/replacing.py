"""Workers that failed: the operator never replaces one until somebody deletes it, so we do, with a back-off.

[operator] a Failed worker keeps its name, and is created anew once it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpijob_elastic.decide import clock
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.model.memory import Tries

# Seconds before the second, third, ... replacement of one index; it doubles up to the longest.
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0
# A worker that lived this long (seconds) failed for a new reason: counting starts again.
FORGIVEN_AFTER = 1800.0


def is_wanted(view: JobView, worker: Worker) -> bool:
    """Whether this worker is to be replaced at all."""
    replace = view.policy.replace_failed_workers is not False
    return view.elastic and replace and worker.terminated and not worker.deleting and worker.index < view.replicas


def tries(view: JobView, *, now: float) -> Mapping[str, Tries]:
    """The count of replacements by pod name, each new failed incarnation counted once."""
    counted = {pod: one for pod, one in view.memory.replaced.items() if now - one.at < FORGIVEN_AFTER}
    for worker in view.workers:
        before = counted.get(worker.name)
        if is_wanted(view, worker) and (before is None or before.uid != worker.ref.uid):
            counted[worker.name] = Tries(count=before.count + 1 if before else 1, at=now, uid=worker.ref.uid)
    return counted


def due_at(view: JobView, worker: Worker, *, now: float) -> float | None:
    """When the failed worker may be deleted; None while its failure is not written down yet."""
    counted = view.memory.replaced.get(worker.name)
    if counted is None or counted.uid != worker.ref.uid:
        return None
    backoff = 0.0 if counted.count == 1 else min(FIRST_BACKOFF * 2 ** (counted.count - 2), LONGEST_BACKOFF)
    return clock.honest(counted.at, now=now) + backoff

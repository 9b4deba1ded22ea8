"""Workers that failed: the operator never replaces one until it is deleted, so we do that, with a back-off and a limit.

[operator] a Failed worker keeps its name, and is created anew once it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpijob_elastic.decide import clock, launcher_refresh, retries
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.model.memory import Tries

# Seconds before the second, third, ... replacement of one index.
BACKOFFS = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
# One that failed more often than there are back-offs is left as it is for so long (seconds), or until it is deleted.
GIVEN_UP_FOR = 3600.0


def is_wanted(view: JobView, worker: Worker) -> bool:
    """Whether this worker is to be replaced at all."""
    failed = worker.terminated and not worker.succeeded and not worker.deleting and worker.index < view.replicas
    return (
        failed
        and view.elastic
        and view.policy.replace_failed_workers is not False
        and launcher_refresh.may_delete(view)
    )


def tries(view: JobView, *, now: float) -> Mapping[str, Tries]:
    """The count of replacements by pod name, each new failed incarnation counted once."""
    failed = {worker.ref.uid for worker in view.workers if is_wanted(view, worker)}
    return retries.counted(view.memory.replaced, view.workers, troubled=failed, now=now)


def due_at(view: JobView, worker: Worker, *, now: float) -> float | None:
    """When the failed worker may be deleted; None while its failure is not written down yet."""
    counted = retries.of_this_pod(view.memory.replaced, worker)
    if counted is None:
        return None
    wait = GIVEN_UP_FOR if counted.count > len(BACKOFFS) else BACKOFFS[counted.count - 1]
    return clock.honest(counted.at, now=now) + wait


def given_up(view: JobView) -> tuple[Worker, ...]:
    """Failed workers that are not replaced for now, for they failed too often."""
    failed = (worker for worker in view.workers if is_wanted(view, worker))
    return tuple(worker for worker in failed if _failures(view, worker) > len(BACKOFFS))


def _failures(view: JobView, worker: Worker) -> int:
    counted = retries.of_this_pod(view.memory.replaced, worker)
    return counted.count if counted else 0

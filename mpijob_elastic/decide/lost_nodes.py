"""Lost nodes: when a worker whose Node is gone leaves the host list.

Nothing runs in such a pod any more, so it is deleted as soon as it is not listed (see drain). The garbage collector of
pods would take a minute or more, and until then no pod can be created under its name.

The list has to wait for the driver:
- It must know that the ranks are dead. Its `kubectl exec` into the pod outlives the node, until we end it (see
  frozen_execs).
- If rank 0 may be among them, the others must have formed their ring again: the driver calls rank 0 after each change
  of the list, and a machine that is gone does not answer (see rank0_loss). Nobody then waits a second time for the pod
  that comes in its place (`Host.reformed`).

If this takes longer than the garbage collector, the list follows that, as for any pod that is gone.
"""

from collections.abc import Iterable

from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.decide.state import JobState, Moment, WorkerState

_NOBODY: frozenset[str] = frozenset()


def leaving(moment: Moment, workers: Iterable[WorkerState], *, resume_at: float) -> frozenset[str]:
    """Return the listed pods whose node is gone and that may leave the list now."""
    if not moment.view.elastic or moment.now < resume_at:
        return _NOBODY
    lost = (worker for worker in workers if _is_lost(worker))
    return frozenset(worker.name for worker in lost if frozen_execs.is_over(moment.view, worker.pod))


def wake_at(state: JobState) -> float | None:
    """Return when such a pod may leave the list, if it waits for the other ranks."""
    return state.resume_at if state.resume_at > state.now and any(map(_is_lost, state.workers)) else None


def _is_lost(worker: WorkerState) -> bool:
    return worker.pod.facts.node_gone_at > 0.0 and bool(worker.published)

"""Rank 0 loss: when additions may resume after a rank was lost.

Where a rank dies, the others form their ring again without it, and Horovod 0.28.1 takes up to half a minute for that: a
rank that noticed closes only the connections of its global context, not those of its process set (operations.cc enables
only the former, and GlooContext::Finalize passes over what is not enabled), so another rank that waits for it in a
collective waits until Gloo's timeout.

A host that is added meanwhile has the driver tell rank 0 (ElasticDriver._notify_workers_host_changes). If rank 0 is the
rank that died, its address answers no more, and the driver connects without a timeout, three times, holding the very
lock that is needed to let the others go on: with Linux' defaults that can take two minutes and more for each. Where
another rank died, nothing has to wait. Rank 0 is on the host that the driver has known for longest (`Memory.elders`).

A worker whose node is gone is lost although it is still listed, and counts from when its node was seen to go.
"""

import math
from collections.abc import Iterable

from mpijob_elastic.decide import drain
from mpijob_elastic.decide.state import Moment, WorkerState, honest
from mpijob_elastic.model.job import JobView

# Seconds. HOROVOD_GLOO_TIMEOUT_SECONDS of a job that does not set it. A longer timeout is not waited for: often nothing
# hangs for so long, and meanwhile the job would have no replacement.
GLOO_TIMEOUT = 30.0
# Seconds for a rank to die and the others to form again.
FORM = 10.0
# Both, in a job that does not set the timeout.
REFORM = GLOO_TIMEOUT + FORM


def resume_at(moment: Moment, workers: Iterable[WorkerState]) -> float:
    """Return the earliest time for an addition, as far as lost ranks are concerned; 0 where nothing has to wait.

    It counts from the creation of the pod that takes the place of a lost one: later than the loss, and known to all; or
    from when the last host that left the list must have been deleted, for a size may be asked for again much later.
    """
    view, elders = moment.view, frozenset(moment.view.memory.elders)
    cut_off = [worker for worker in workers if worker.pod.facts.node_gone_at and worker.published]
    others = len(view.host_of) - len(cut_off)
    # One rank has nobody to wait for, but for a peer that is cut off. Too few wait for any addition.
    if others < max(1 if cut_off else 2, view.facts.min_np_workers):
        return 0.0
    removed_at = honest(view.memory.removed_at, now=moment.now)
    all_gone_at = drain.deadline(view, removed_at) if removed_at else math.inf
    absent = [worker for worker in workers if worker.succeeds_lost and not worker.published]
    times = {
        **{worker.name: honest(worker.pod.facts.node_gone_at, now=moment.now) for worker in cut_off},
        **{worker.name: min(honest(worker.pod.facts.created_at, now=moment.now), all_gone_at) for worker in absent},
    }
    over = {pod for pod in times if (last := view.memory.hosts.get(pod)) and last.reformed}
    waits = [at for pod, at in times.items() if pod not in over and (not elders or pod in elders)]
    return max(waits) + reform(view) if waits else 0.0


def reform(view: JobView) -> float:
    """Return the seconds that ranks need at most to form their ring again after a loss."""
    return min(view.facts.gloo_timeout or GLOO_TIMEOUT, GLOO_TIMEOUT) + FORM

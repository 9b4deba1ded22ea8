"""Rank 0 loss: when additions may resume after a rank was lost.

Where a rank dies, the others form their ring again without it, and Horovod 0.28.1 takes up to half a minute for that: a
rank that noticed closes only the connections of its global context, not those of its process set (operations.cc enables
only the former, and GlooContext::Finalize passes over what is not enabled), so another rank that waits for it in a
collective waits until Gloo's timeout.

A host that is added meanwhile has the driver tell rank 0 (ElasticDriver._notify_workers_host_changes). If rank 0 is the
rank that died, its address answers no more, and the driver connects without a timeout, three times, holding the very
lock that is needed to let the others go on: with Linux' defaults that can take two minutes and more for each. Where
another rank died, nothing has to wait. Rank 0 is on the host that the driver has known for longest (`Memory.elders`).
"""

import math
from collections.abc import Iterable

from mpijob_elastic.decide import drain
from mpijob_elastic.decide.state import Moment, WorkerState, honest

# Seconds. HOROVOD_GLOO_TIMEOUT_SECONDS (default 30), and the time for a rank to die and the others to form again.
REFORM = 40.0


def resume_at(moment: Moment, workers: Iterable[WorkerState]) -> float:
    """Return the earliest time for an addition, as far as lost ranks are concerned; 0 where nothing has to wait.

    It counts from the creation of the pod that takes the place of a lost one: later than the loss, and known to all; or
    from when the last host that left the list must have been deleted, for a size may be asked for again much later.
    """
    view, elders = moment.view, moment.view.memory.elders
    if len(view.host_of) < max(2, view.min_np_workers):
        return 0.0  # one rank has nobody to wait for, and too few wait for any addition
    absent = [worker for worker in workers if worker.succeeds_lost and not worker.published]
    lost = [worker.pod for worker in absent if not elders or worker.name in elders]
    if not lost:
        return 0.0
    created_at = max(honest(worker.created_at, now=moment.now) for worker in lost)
    removed_at = honest(view.memory.removed_at, now=moment.now)
    all_gone_at = drain.deadline(view, removed_at) if removed_at else math.inf
    return min(created_at, all_gone_at) + REFORM

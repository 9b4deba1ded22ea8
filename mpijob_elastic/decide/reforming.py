"""When the ranks that are left after a loss can be expected to train again; until then no host is added.

Where a rank dies, the others form anew without it, and Horovod 0.28.1 takes up to half a minute for that: a rank that
noticed closes only the connections of its global context, not those of its process set (operations.cc enables only the
former, and GlooContext::Finalize passes over what is not enabled), so another that waits for it in a collective waits
until Gloo's timeout.

A host that is added meanwhile has the driver tell rank 0 (ElasticDriver._notify_workers_host_changes). If that is the
one that died, its address answers no more, and the driver connects without a timeout, three times, holding the very
lock that is needed to let the others go on: with Linux' defaults that can take two minutes and more for each.
"""

from __future__ import annotations

from mpijob_elastic.decide import clock, naming
from mpijob_elastic.model.job import JobView

# Seconds. HOROVOD_GLOO_TIMEOUT_SECONDS (default 30), and as much as a rank took to die and the others to form anew.
REFORM = 40.0


def reformed_at(view: JobView, *, now: float) -> float:
    """The earliest time for an addition, as far as lost ranks are concerned; 0 where there is nothing to wait for.

    It counts from the creation of the pod that takes the place of a lost one: later than the loss, and known to all.
    """
    if len(view.hosts) < max(2, view.fewest):
        return 0.0  # one rank has nobody to wait for, and too few wait for whoever is added
    absent = (worker for worker in view.workers if not view.is_published(worker))
    lost = [worker for worker in absent if naming.succeeds_lost(view, worker, now=now)]
    return max((clock.honest(worker.created_at, now=now) + REFORM for worker in lost), default=0.0)

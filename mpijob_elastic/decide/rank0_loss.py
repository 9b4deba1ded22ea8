"""When the ranks that are left after a loss can be expected to train again; until then no host is added.

Where a rank dies, the others form anew without it, and Horovod 0.28.1 takes up to half a minute for that: a rank that
noticed closes only the connections of its global context, not those of its process set (operations.cc enables only the
former, and GlooContext::Finalize passes over what is not enabled), so another that waits for it in a collective waits
until Gloo's timeout.

A host that is added meanwhile has the driver tell rank 0 (ElasticDriver._notify_workers_host_changes). If that is the
one that died, its address answers no more, and the driver connects without a timeout, three times, holding the very
lock that is needed to let the others go on: with Linux' defaults that can take two minutes and more for each. Where
another died, nothing has to wait. Rank 0 is on the host that the driver has known for longest.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from mpijob_elastic.decide import clock, host_names
from mpijob_elastic.model.job import JobView, Worker

# Seconds. HOROVOD_GLOO_TIMEOUT_SECONDS (default 30), and as much as a rank takes to die and the others to form anew.
REFORM = 40.0
# Where there are more elders than that, any pod may be the oldest: less to write, and rarely waited for in vain.
MOST_ELDERS = 100


def reformed_at(view: JobView, *, now: float) -> float:
    """The earliest time for an addition, as far as lost ranks are concerned; 0 where there is nothing to wait for.

    It counts from the creation of the pod that takes the place of a lost one: later than the loss, and known to all; or
    from when the last host that left the list must have been deleted, for a size may be asked for again much later.
    """
    if len(view.published_pods) < max(2, view.min_np_workers):
        return 0.0  # one rank has nobody to wait for, and too few wait for whoever is added
    absent = (worker for worker in view.workers if not view.is_published(worker) and _may_lead(view, worker))
    lost = [worker for worker in absent if host_names.succeeds_lost(view, worker, now=now)]
    if not lost:
        return 0.0
    created = max(clock.honest(worker.created_at, now=now) for worker in lost)
    return min(created, _all_gone_at(view, now=now)) + REFORM


def elders(view: JobView, *, added: Collection[str], removed: Collection[str]) -> tuple[str, ...]:
    """Pods of which one's host has rank 0, or had it before `removed` left; to be remembered. Empty where any may.

    [horovod] Hosts keep the order in which the driver came to know them, those that come together in any order
    (HostManager.order_available_hosts), and ranks are dealt in that order.
    """
    if not view.driver_running:
        return ()  # it will know all at once
    if not (added or removed):
        return view.memory.elders
    known = frozenset(view.memory.elders)
    oldest = known.intersection(view.published_pods) or frozenset(view.published_pods)
    found = oldest | known if removed else oldest
    return tuple(sorted(found)) if len(found) <= MOST_ELDERS else ()


def _all_gone_at(view: JobView, *, now: float) -> float:
    removed_at = clock.honest(view.memory.removed_at, now=now)
    return removed_at + view.policy.drain_timeout if removed_at else math.inf


def _may_lead(view: JobView, worker: Worker) -> bool:
    return not view.memory.elders or worker.name in view.memory.elders

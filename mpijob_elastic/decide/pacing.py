"""When a change of the host list may be published.

Horovod's driver reads discover_hosts.sh once a second (DISCOVER_HOSTS_FREQUENCY_SECS) and re-forms its ring after a
change. Removals and additions that reach one ring forming deadlock it: old ranks skip the synchronisation that new ones
wait for (horovod#3494). So changes are published apart, and several workers that come up together are one change.
All times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic.decide import clock, launcher_refresh
from mpijob_elastic.model.job import JobView, Worker

# Two discovery periods of 1 s, and what the kubelet takes to show a touched launcher its file (measured: 0.3-0.7 s).
SETTLE = 3.0
# How long the first Ready worker of a scale-out waits for the others, so that they join in one ring forming.
GATHER = 2.0


def settled_at(view: JobView, *, now: float) -> float:
    """The earliest time for the next change that is ours to time; 0 while no driver can read the list."""
    if not view.driver_may_run:
        return 0.0
    shown = launcher_refresh.shown_at(view, now=now) or 0.0
    return max(shown, *(clock.honest(at, now=now) for at in (view.memory.added_at, view.memory.removed_at))) + SETTLE


def gathered_at(view: JobView, newcomers: Iterable[Worker], *, now: float) -> float:
    """When these Ready workers need not wait for the rest of the scale-out any longer; 0 where none is missing."""
    ready = [worker for worker in view.workers if worker.ready and worker.index < view.replicas]
    if len(ready) >= view.replicas:
        return 0.0
    # Ready by a clock far ahead of ours counts as Ready long ago: waiting for that time could take hours.
    return min((clock.honest(worker.ready_at or 0.0, now=now) for worker in newcomers), default=0.0) + GATHER

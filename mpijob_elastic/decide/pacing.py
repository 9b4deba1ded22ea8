"""When a change of the host list may be published.

Horovod's driver reads discover_hosts.sh once a second (DISCOVER_HOSTS_FREQUENCY_SECS) and re-forms its ring after a
change. Removals and additions that reach one ring forming deadlock it: old ranks skip the synchronisation that new ones
wait for (horovod#3494). So changes are published apart, and several workers that come up together are one change.
All times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic.decide import clock
from mpijob_elastic.model.job import JobView, Worker

# Two discovery periods of 1 s, and what the kubelet takes to show a touched launcher its file (measured: 0.3-0.7 s).
SETTLE = 3.0
# How long the first Ready worker of a scale-out waits for the others, so that they join in one ring forming.
GATHER = 2.0


def settled_at(view: JobView, *, now: float) -> float:
    """The earliest time for the next change that is ours to time; 0 while no driver reads the list."""
    if not view.driver_running:
        return 0.0
    changes = (view.memory.added_at, view.memory.removed_at)
    return max(clock.honest(at, now=now) for at in changes) + SETTLE


def gathered_at(view: JobView, newcomers: Iterable[Worker], *, now: float) -> float:
    """When these Ready workers need not wait for the rest of the scale-out any longer; 0 where none is missing."""
    if all(worker is not None and worker.ready for worker in map(view.worker, view.wanted_names())):
        return 0.0
    # A pod that says it became Ready in the future is the work of two clocks; it counts from now.
    return min((min(worker.ready_at or now, now) for worker in newcomers), default=now) + GATHER

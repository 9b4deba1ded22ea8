"""Which `kubectl exec`s of a launcher are frozen: they still run, though nothing is at their other end any more.

When a pod goes while a command runs in it, the client is often not told and waits for ever (kubernetes#129144, #89233).
Horovod's driver then waits for the end of a rank that is long gone, and the others wait for the driver.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic.decide import clock
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Worker


def cut_off(view: JobView, execs: Iterable[Exec]) -> tuple[Exec, ...]:
    """Those whose pod is gone, has ended, or is another of the same name by now.

    One look proves nothing, for an exec takes a moment to end: those are frozen that are found so twice.
    """
    return tuple(one for one in execs if _is_cut_off(view.worker(one.pod), one))


def _is_cut_off(worker: Worker | None, one: Exec) -> bool:
    if worker is None or worker.terminated:
        return True
    return one.started_at + clock.SKEW < worker.created_at

"""Drain times: since when this process has seen each drain, by a monotonic clock.

A drain begins at a time that some leader wrote down. The wall clock of this process may be ahead of that leader's, or
step forward meanwhile, so the wall clock alone ends no drain. Times are kept in memory: a new leader starts to count
when it first sees a drain, so a drain may take longer after a change of the leader, never less than its drain-timeout.
"""

from collections.abc import Callable
from dataclasses import replace

from mpijob_elastic.decide import drain
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import JobView


class DrainTimes:
    """Remembers when each drain (`drain.begun`) was first seen; `clock` returns monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: dict[tuple[str, str], dict[tuple[str, float], float]] = {}

    def timed(self, view: JobView) -> JobView:
        """Return the view with the time for which each of its drains has been seen."""
        if not view.memory.left:
            return view  # nothing drains, as at most looks
        first, now = self._first.get((view.namespace, view.name), {}), self._clock()
        return replace(view, drains_seen={found: now - at for found, at in first.items()})

    def watch(self, state: JobState) -> None:
        """Note the drains of a job as it is now; any other drain of it is over."""
        key = state.view.namespace, state.view.name
        before, now = self._first.pop(key, {}), self._clock()
        if begun := drain.begun(state):
            self._first[key] = {found: before.get(found, now) for found in begun}

    def forget(self, namespace: str, job: str) -> None:
        """Forget a job that is gone."""
        self._first.pop((namespace, job), None)

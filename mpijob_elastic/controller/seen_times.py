"""Seen times: since when this process has seen each drain, missing pod, and host list, by a monotonic clock.

A drain begins, and a list changes, at a time that some leader wrote down. The wall clock of this process may be ahead
of that leader's, or step forward meanwhile, so the wall clock alone ends no drain, and lets no change follow another.
Times are kept in memory: a new leader starts to count when it first sees a job, so after a change of the leader a wait
may take longer, never less than its time.
"""

from collections.abc import Callable
from dataclasses import replace

from mpijob_elastic.decide import drain
from mpijob_elastic.decide.state import SETTLE, JobState
from mpijob_elastic.model.job import JobView


class SeenTimes:
    """Remembers when each drain, missing pod and list was first seen; `clock` returns monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: dict[tuple[str, str], dict[tuple[str, float], float]] = {}
        # By job: the times of the list's last changes, its touch, and when they were first seen.
        self._lists: dict[tuple[str, str], tuple[tuple[float, float, str], float]] = {}

    def timed(self, view: JobView) -> JobView:
        """Return the view with the times for which its drains, missing pods and new list have been seen."""
        now = self._clock()
        list_seen = self._list_seen(view, now)
        if not view.memory.left and not view.missing and list_seen is None:
            return view  # nothing waits, as at most looks
        first = self._first.get((view.namespace, view.name), {})
        return replace(view, drains_seen={found: now - at for found, at in first.items()}, list_seen=list_seen)

    def watch(self, state: JobState) -> None:
        """Note drains and missing pods of a job as it is now; any other drain of it is over."""
        key = state.view.namespace, state.view.name
        before, now = self._first.pop(key, {}), self._clock()
        if begun := drain.begun(state) | {(pod, 0.0) for pod in state.view.missing}:
            self._first[key] = {found: before.get(found, now) for found in begun}

    def forget(self, namespace: str, job: str) -> None:
        """Forget a job that is gone."""
        self._first.pop((namespace, job), None)
        self._lists.pop((namespace, job), None)

    def _list_seen(self, view: JobView, now: float) -> float | None:
        job, memory = (view.namespace, view.name), view.memory
        if not (memory.added_at or memory.removed_at):
            return None
        touch = (view.launcher.facts.refreshed or "") if view.launcher else ""
        change = memory.added_at, memory.removed_at, touch.partition("+")[0]  # a repeated touch shows nothing new
        known = self._lists.get(job)
        if known is None or known[0] != change:
            known = self._lists[job] = change, now
        seen = now - known[1]
        return seen if seen < SETTLE else None

"""State of each job between two looks: times that the process saw, refused writes, size changes.

In memory alone: after a change of the leader a refused write is tried at once, a wait may take
longer but never less than its time, and a change of size is not measured.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from random import Random

from mpijob_elastic import names
from mpijob_elastic.decide import drain, overdue
from mpijob_elastic.decide.actions import Action, Note, Occasion, Plan, WriteRole, occasion, warning
from mpijob_elastic.decide.notices import LONGEST_REASON, REFUSED
from mpijob_elastic.decide.state import REFUSED_OFTEN, SETTLE, JobState
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics

# Each try costs a write and the API server's calls for it, and a write that a policy refuses may
# stay refused.
WRITE_RETRY = Backoff(first=1.0, longest=30.0)


@dataclass(frozen=True, kw_only=True)
class _Hindered:
    """What hinders a job, and has not let it go in order for as long as a drain may take."""

    #: When this process first saw it.
    since: float
    #: When this process first saw that nothing hinders the job for now; None while something does.
    free_since: float | None = None


@dataclass(eq=False, kw_only=True)
class SeenTimes:
    """The times at which this process first saw each drain, missing pod, hindrance, and host list.

    A drain begins, and a list changes, at a time that some leader wrote down. The wall clock of
    this process may be ahead of that leader's, or step forward meanwhile, so the wall clock alone
    ends no drain, and lets no change follow another.
    """

    #: Returns monotonic seconds.
    clock: Callable[[], float]
    # By job: each pod with the time at which its drain began (0.0 for a missing pod), and when this
    # pair was first seen.
    _first: dict[tuple[str, str], dict[tuple[str, float], float]] = field(
        default_factory=dict, init=False
    )
    # By job: what hinders what must go (decide/overdue).
    _hindered: dict[tuple[str, str], _Hindered] = field(default_factory=dict, init=False)
    # By job: the times of the list's last changes, its touch, and when they were first seen.
    _lists: dict[tuple[str, str], tuple[tuple[float, float, str], float]] = field(
        default_factory=dict, init=False
    )

    def timed(self, view: JobView) -> JobView:
        """Return the view with the seconds since its drains, missing pods and list were seen.

        It also has the seconds for which something has hindered what must go.
        """
        now = self.clock()
        hindered = self._hindered.get((view.namespace, view.name))
        if hindered is not None and hindered.free_since is None:
            view = replace(view, hindered_for=now - hindered.since)
        list_seen = self._list_seen(view, now)
        if not view.memory.left and not view.missing and list_seen is None:
            return view  # nothing waits; this is the usual case
        first = self._first.get((view.namespace, view.name), {})
        return replace(
            view, drains_seen={found: now - at for found, at in first.items()}, list_seen=list_seen
        )

    def watch(self, state: JobState) -> bool:
        """Note the drains and missing pods of a job as it is now; its other drains are over.

        Return True if from now on something hinders what must go, which the state does not know.
        """
        key = state.view.namespace, state.view.name
        before, now = self._first.pop(key, {}), self.clock()
        begins = self._begins_to_hinder(key, state, now)
        if begun := drain.begun(state) | {(pod, 0.0) for pod in state.view.missing}:
            self._first[key] = {found: before.get(found, now) for found in begun}
        return begins

    def _begins_to_hinder(self, key: tuple[str, str], state: JobState, now: float) -> bool:
        """Note whether something hinders what must go; return True if it did not until now."""
        known = self._hindered.get(key)
        if overdue.is_hindered(state):
            since = known.since if known else now
            self._hindered[key] = _Hindered(since=since)
            return known is None or known.free_since is not None
        if known is None:
            return False
        free_since = now if known.free_since is None else known.free_since
        in_order = now - free_since >= state.view.policy.drain_timeout
        if in_order or not overdue.must_go(state.view, state.wishes):
            del self._hindered[key]
        else:
            self._hindered[key] = replace(known, free_since=free_since)
        return False

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._first.pop(key, None)
        self._hindered.pop(key, None)
        self._lists.pop(key, None)

    def _list_seen(self, view: JobView, now: float) -> float | None:
        memory = view.memory
        if not (memory.added_at or memory.removed_at):
            return None
        touch = (view.launcher.facts.refreshed or "") if view.launcher else ""
        change = (
            memory.added_at,
            memory.removed_at,
            touch.partition("+")[0],
        )  # a repeated touch shows nothing new
        job = view.namespace, view.name
        if job not in self._lists or self._lists[job][0] != change:
            self._lists[job] = change, now
        seen = now - self._lists[job][1]
        return seen if seen < SETTLE else None


@dataclass
class _Refused:
    count: int = 0
    again_at: float = 0.0
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """Refused writes, by job and occasion.

    Each write is tried again by itself, at growing intervals, and told to the user.
    """

    random: Random = field(default_factory=Random)
    #: Returns seconds that never step.
    clock: Callable[[], float] = time.monotonic
    _found: dict[JobKey, dict[Occasion, _Refused]] = field(default_factory=dict)

    def keep(self, key: JobKey, due: Sequence[Action]) -> None:
        """Forget the refusals of actions that are not due any more."""
        if found := self._found.get(key):
            wanted = {occasion(action) for action in due}
            self._found[key] = {what: refused for what, refused in found.items() if what in wanted}

    def waits(self, key: JobKey, action: Action) -> bool:
        """Tell whether it is too early to try a write again."""
        refused = self._found.get(key, {}).get(occasion(action))
        return refused is not None and self.clock() < refused.again_at

    def add(self, key: JobKey, action: Action, error: Exception) -> Note | None:
        """Remember a refusal; return a notice of it at the REFUSED_OFTEN-th time, else None."""
        refused = self._found.setdefault(key, {}).setdefault(occasion(action), _Refused())
        refused.count += 1
        refused.again_at = self.clock() + WRITE_RETRY.delay(refused.count, self.random)
        if refused.count != REFUSED_OFTEN:
            return None
        what, _, _ = action.says().partition("\n")
        note = warning(
            REFUSED,
            f"not done: {what[:LONGEST_REASON]}. {str(error)[:LONGEST_REASON]}. "
            "Everything else goes on",
        )
        refused.words = note.message
        return note

    def done(self, key: JobKey, action: Action) -> None:
        """Note that a write was accepted."""
        self._found.get(key, {}).pop(occasion(action), None)

    def seen(self, key: JobKey) -> Mapping[type, str]:
        """Return the first reason to tell for each kind of action that is refused."""
        words: dict[type, str] = {}
        for (kind, _), refused in self._found.get(key, {}).items():
            words[kind] = words.get(kind) or refused.words
        return words

    def again_in(self, key: JobKey) -> float | None:
        """Return the seconds until a refused write may be tried again; None without refusals."""
        times = [refused.again_at for refused in self._found.get(key, {}).values()]
        return max(0.0, min(times) - self.clock()) if times else None

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._found.pop(key, None)


@dataclass
class _Scale:
    size: int
    started: float | None = None  # None while no change of size is under way
    reached: set[str] = field(default_factory=set)


@dataclass(eq=False)
class ScaleTimes:
    """The metrics of jobs: their workers, and the time that changes of size take."""

    metrics: Metrics
    _: KW_ONLY
    #: Returns monotonic seconds.
    clock: Callable[[], float]
    _scales: dict[JobKey, _Scale] = field(default_factory=dict, init=False)

    def watch(self, key: JobKey, state: JobState, plan: Plan) -> None:
        """Note the state of a job and the plan for it."""
        view = state.view
        if not view.elastic or view.facts.finished:
            return self.forget(key)
        if self._scales.setdefault(key, _Scale(view.replicas)).size != view.replicas:
            self._scales[key] = _Scale(view.replicas, started=self.clock())
        counts = (
            view.replicas,
            sum(worker.ready for worker in state.workers),
            len(view.published_pods),
            sum(worker.drain is not None and not worker.wanted for worker in state.workers),
            sum(names.GATE_QUEUED in worker.pod.facts.gates for worker in state.workers),
        )
        for gauge, count in zip(self.metrics.of_jobs, counts, strict=True):
            gauge.labels(*key).set(count)
        return self._advance(self._scales[key], state, plan)

    def forget(self, key: JobKey) -> None:
        """Forget a job that has ended or is gone."""
        if self._scales.pop(key, None):
            for gauge in self.metrics.of_jobs:
                gauge.remove(*key)

    def clear(self) -> None:
        """Forget all jobs: another process leads."""
        for key in list(self._scales):
            self.forget(key)

    def _advance(self, scale: _Scale, state: JobState, plan: Plan) -> None:
        """Note which phases of a change of size have been reached."""
        if scale.started is None:
            return
        belong = [
            worker
            for worker in state.workers
            if worker.published and worker.wanted and worker.ready and not worker.moves_now
        ]
        published = len(belong) == len(state.view.host_of) == state.view.replicas
        phases = {
            "role": not any(isinstance(action, WriteRole) for action in plan.actions),
            "published": published,
            "settled": published and not state.view.surplus and not plan.actions,
        }
        for phase, is_reached in phases.items():
            if is_reached and phase not in scale.reached:
                scale.reached.add(phase)
                self.metrics.scale.labels(phase).observe(self.clock() - scale.started)
        if "settled" in scale.reached:
            scale.started = None

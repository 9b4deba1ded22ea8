"""Metrics of jobs: their workers, and the time that changes of size take, phase by phase.

They are kept in memory only: a scale during a restart is not measured.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Plan, WriteRole
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics


@dataclass(kw_only=True)
class _Scale:
    started: float
    reached: set[str] = field(default_factory=set)


class ScaleTimes:
    """Follows the looks at each job; `clock` returns monotonic seconds."""

    def __init__(self, metrics: Metrics, *, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._clock = clock
        self._sizes: dict[JobKey, int] = {}
        self._scales: dict[JobKey, _Scale] = {}

    def watch(self, key: JobKey, state: JobState, plan: Plan) -> None:
        """Note the state of a job and the plan for it."""
        view = state.view
        if not view.elastic or view.facts.finished:
            self.forget(key)
            return
        before = self._sizes.setdefault(key, view.replicas)
        if before != view.replicas:
            self._sizes[key] = view.replicas
            self._scales[key] = _Scale(started=self._clock())
        self._show(key, state)
        scale = self._scales.get(key)
        if scale is not None:
            self._advance(key, scale, state, plan)

    def forget(self, key: JobKey) -> None:
        """Forget a job that has ended or is gone."""
        if self._sizes.pop(key, None) is not None:
            for gauge in self._metrics.of_jobs:
                gauge.remove(key.namespace, key.name)
        self._scales.pop(key, None)

    def clear(self) -> None:
        """Forget all jobs: another process leads."""
        for key in list(self._sizes):
            self.forget(key)

    def _show(self, key: JobKey, state: JobState) -> None:
        counts = (
            state.view.replicas,
            sum(worker.ready for worker in state.workers),
            len(state.view.published_pods),
            sum(worker.drain is not None and not worker.wanted for worker in state.workers),
            sum(names.GATE_QUEUED in worker.pod.facts.gates for worker in state.workers),
        )
        for gauge, count in zip(self._metrics.of_jobs, counts, strict=True):
            gauge.labels(key.namespace, key.name).set(count)

    def _advance(self, key: JobKey, scale: _Scale, state: JobState, plan: Plan) -> None:
        published = [worker for worker in state.workers if worker.published]
        if not any(isinstance(action, WriteRole) for action in plan.actions):
            self._reach(scale, "role")
        belong = [worker for worker in published if worker.wanted and worker.ready and not worker.leaves]
        complete = len(belong) == len(state.view.host_of) == state.view.replicas
        if complete:
            self._reach(scale, "published")
        if complete and not state.view.surplus and not plan.actions:
            self._reach(scale, "settled")
            del self._scales[key]

    def _reach(self, scale: _Scale, phase: str) -> None:
        if phase not in scale.reached:
            scale.reached.add(phase)
            self._metrics.scale.labels(phase).observe(self._clock() - scale.started)

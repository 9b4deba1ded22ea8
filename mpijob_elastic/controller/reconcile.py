"""Reconcile a job in four steps.

- see the whole job in the caches;
- decide what is due;
- carry out the writes in order, and begin the looks;
- repeat until no write is due; then sleep until something changes, or until the time in the plan.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from mpijob_elastic.act.gate import Altered
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.queue_units import QueueUnits
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.act.workloads import Workloads
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.controller import left_behind
from mpijob_elastic.controller.scale_metrics import ScaleTimes
from mpijob_elastic.controller.seen_times import SeenTimes
from mpijob_elastic.decide import derive, plan
from mpijob_elastic.decide.actions import (
    Fill,
    LowerPodGroup,
    MakePodGroup,
    Plan,
    ProbeWorkers,
    RollBack,
    TunePodGroup,
    UnitAction,
    WriteSelector,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.backoff import Backoff
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.observe.caches import Caches, JobKey

log = logging.getLogger(__name__)

# A scale takes four rounds (Role, list, touch, deletions); a job that is not done after this many comes back later.
MOST_ROUNDS = 16
# Seconds until it does.
UNDONE_PAUSE = 5.0
# Until Kueue is asked again after errors in a row. Each try costs several requests, and what is refused may stay so.
QUEUE_RETRY = Backoff(first=1.0, longest=15.0)
# Seconds to the next look at least while a write is refused.
REFUSED_PAUSE = 1.0
# Seconds until an HPA that could not be written is tried again.
AUTOSCALER_PAUSE = 60.0


# Somebody may refuse these for as long as the job lives: a PodGroup of that name is another's, a policy bounds sizes.
# Drains and the rest of the job must not wait for that.
_APART = (MakePodGroup, LowerPodGroup, TunePodGroup, WriteSelector, RollBack, Fill)


@dataclass(frozen=True, kw_only=True)
class Reconciler:
    """Brings jobs as far as is possible now; `now` returns seconds since the epoch."""

    caches: Caches
    queue: WorkQueue[JobKey]
    writer: Writer
    workloads: Workloads
    units: QueueUnits
    prober: Prober
    execs: Execs
    scales: ScaleTimes
    drains: SeenTimes
    now: Callable[[], float]
    random: Random = field(default_factory=Random)
    # Errors of Kueue in a row, by job.
    _refused: dict[JobKey, int] = field(default_factory=dict)

    async def reconcile(self, key: JobKey) -> None:
        """Bring a job as far as is possible now. Raises what Writer.perform raises."""
        for _ in range(MOST_ROUNDS):
            state = self._see(key)
            wait = left_behind.end_ranks(key, self.caches.left_behind(key), self.prober, now=self.now())
            if wait is not None:
                self.queue.put_after(key, wait)
            due = plan(state) if state else Plan()
            if refused := await self._do(key, state, due):
                if all(isinstance(action, _APART) for action in due.actions):
                    await self._ask(state, due)
                self._rest(key, state, due, soonest=REFUSED_PAUSE)
                raise refused
            if not (due.actions or await self._ask(state, due) or await self._autoscale(state, due)):
                return self._rest(key, state, due)
        log.warning("%s is not done after %d rounds; again in %.0f s", key, MOST_ROUNDS, UNDONE_PAUSE)
        self.queue.put_after(key, UNDONE_PAUSE)
        return None

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self.scales.forget(key)
        self.drains.forget(key.namespace, key.name)
        self.writer.forget(key.namespace, key.name)
        self.prober.forget(key.namespace, key.name)
        self.execs.forget(key.namespace, key.name)
        self.workloads.forget(key.namespace, key.name)
        self._refused.pop(key, None)

    def _see(self, key: JobKey) -> JobState | None:
        self.queue.caught_up(key)
        view = self.caches.view(key, probes=self.prober.seen, holds=self.execs.held)
        if view is None:
            return None
        state = derive(self.drains.timed(self.writer.informed(view)), now=self.now())
        self.drains.watch(state)
        return state

    async def _do(self, key: JobKey, state: JobState | None, due: Plan) -> errors.KubeError | None:
        """Carry out what is due; return the refusal of a write on which nothing else depends."""
        refused: errors.KubeError | None = None
        if state is None:
            self.forget(key)
            return refused
        self.scales.watch(key, state, due)
        for action in due.actions:
            try:
                await self.writer.perform(state.view, action)
            except errors.KubeError as error:
                is_lasting = isinstance(error, Altered) or not errors.may_pass(error)
                if not (is_lasting and isinstance(action, _APART)):
                    raise
                refused = error
        for look in due.looks:
            if isinstance(look, ProbeWorkers):
                self.prober.begin(state.view, look)
            else:
                self.execs.begin(state.view, look)
        return refused

    async def _ask(self, state: JobState | None, due: Plan) -> bool:
        """Write what Kueue or KubeQueue is to know; return True if all was written. Training goes on without them.

        What is refused holds up nothing else: others may wait for the quota that the next write gives back.
        """
        if state is None or not due.queue:
            return False
        key, failed = JobKey(state.view.namespace, state.view.name), None
        for action in due.queue:
            try:
                if isinstance(action, UnitAction):
                    await self.units.perform(state.view, action)
                else:
                    await self.workloads.perform(state.view, action)
            except errors.KubeError as error:
                failed = error
                if errors.may_pass(error):
                    break  # the rest would most likely fail too
        if failed is None:
            self._refused.pop(key, None)
            return True
        is_lasting = not isinstance(failed, errors.Conflict)
        self._refused[key] = self._refused.get(key, 0) + 1 if is_lasting else 1
        pause = QUEUE_RETRY.delay(self._refused[key], self.random)
        log.log(logging.WARNING if is_lasting else logging.DEBUG, "%s: %s; again in %.1f s", key, failed, pause)
        self.queue.put_after(key, pause)
        return False

    async def _autoscale(self, state: JobState | None, due: Plan) -> bool:
        """Write the job's HPA; return True if it was written. Training does not depend on it."""
        if state is None or due.autoscaler is None:
            return False
        try:
            await self.writer.autoscale(state.view, due.autoscaler)
        except errors.KubeError as error:
            key = JobKey(state.view.namespace, state.view.name)
            log.warning("%s: %s; again in %.0f s", key, error, AUTOSCALER_PAUSE)
            self.queue.put_after(key, AUTOSCALER_PAUSE)
            return False
        return True

    def _rest(self, key: JobKey, state: JobState | None, due: Plan, *, soonest: float = 0.0) -> None:
        if state:
            self.prober.tidy(state.view)
        times = [at for at in (due.wake_at, due.look_at) if at is not None]
        if times:
            self.queue.put_after(key, max(soonest, min(times) - self.now()))

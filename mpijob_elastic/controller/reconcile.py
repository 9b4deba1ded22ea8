"""Reconcile a job in four steps.

- see the whole job in the caches;
- decide what is due;
- begin the looks, and carry out the writes in order;
- repeat until no write is due; then sleep until something changes, or until the time in the plan.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from mpijob_elastic.act.driver_looks import DriverLooks
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.controller.ledgers import Ledgers
from mpijob_elastic.controller.per_job_state import Refusals, ScaleTimes, SeenTimes
from mpijob_elastic.decide import derive, plan
from mpijob_elastic.decide.actions import (
    Action,
    Look,
    LookAtDriver,
    LookIntoLauncher,
    Plan,
    ProbeWorkers,
    TellUser,
    is_late,
    needs_notice,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey

log = logging.getLogger(__name__)

# A scale takes four rounds (Role, list, touch, deletions); a job that is not done after this many
# rounds comes back later.
MOST_ROUNDS = 16
# Seconds until an undone job comes back.
UNDONE_PAUSE = 5.0
# The least seconds to the next look while a write is refused.
REFUSED_PAUSE = 1.0
# Seconds: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
DEFAULT_GRACE = 30.0
# Seconds until ranks of a job that is gone are ended once more.
END_AGAIN = 5.0


@dataclass(frozen=True, kw_only=True)
class Reconciler:
    """Brings jobs as far as is possible now."""

    caches: Caches
    queue: WorkQueue[JobKey]
    writer: Writer
    prober: Prober
    driver_looks: DriverLooks
    scales: ScaleTimes
    drains: SeenTimes
    ledgers: Ledgers
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    refusals: Refusals = field(default_factory=Refusals)

    async def reconcile(self, key: JobKey) -> None:
        """Bring a job as far as is possible now.

        Raises errors.KubeError, NotLeader or Outdated: the job must be looked at again. A refusal
        is not raised.
        """
        for _ in range(MOST_ROUNDS):
            state = self._see(key)
            wait = end_ranks(key, self.caches.left_behind(key), self.prober, now=self.now())
            if wait is not None:
                self.queue.put_after(key, wait)
            if state is None:
                self.forget(key)
                return await self.writer.jobless(key)
            due = plan(state)
            if not await self._do(key, state, due):
                return self._rest(key, state, due)
        log.warning(
            "%s is not done after %d rounds; again in %.0f s", key, MOST_ROUNDS, UNDONE_PAUSE
        )
        self.queue.put_after(key, UNDONE_PAUSE)
        return None

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        for memory in (
            self.scales,
            self.drains,
            self.writer,
            self.prober,
            self.writer.execs,
            self.driver_looks,
            self.refusals,
            self.ledgers,
        ):
            memory.forget(key)

    def _see(self, key: JobKey) -> JobState | None:
        self.queue.caught_up(key)
        view = self.caches.view(
            key,
            probes=partial(self.prober.seen, key),
            holds=partial(self.writer.execs.held, key),
            acknowledged=partial(self.driver_looks.seen, key),
        )
        if view is None:
            return None
        if refused := self.refusals.seen(key):
            view = replace(view, refused=refused)
        view = self.ledgers.followed(self.writer.informed(view))
        state = derive(self.drains.timed(view), now=self.now())
        if self.drains.watch(state):
            state = derive(self.drains.timed(view), now=self.now())
        return state

    def _look(self, view: JobView, look: Look) -> None:
        match look:
            case ProbeWorkers():
                self.prober.begin(view, look)
            case LookAtDriver():
                self.driver_looks.begin(view, look)
            case LookIntoLauncher():
                self.writer.execs.begin(view, look)

    async def _do(self, key: JobKey, state: JobState, due: Plan) -> bool:
        """Carry out the plan; return True if anything was written.

        A refused action holds back only the actions that need it. Marks wait for a round in which
        nothing else is written. A conflict is raised after all actions were tried. If the server is
        away, the first action says so, and no other is tried.
        """
        self.scales.watch(key, state, due)
        self.refusals.keep(key, due.actions)
        # The looks do not rely on the writes, and a write may take as long as admission takes.
        for look in due.looks:
            self._look(state.view, look)
        written, told = False, True
        outdated: errors.Conflict | Outdated | None = None
        for action in due.actions:
            if needs_notice(action) and not told:
                continue
            if written and is_late(action):
                continue
            taken = False
            try:
                taken = await self._try(key, state.view, action)
            except (errors.Conflict, Outdated) as error:
                outdated = outdated or error
            written = written or taken
            told = told and (taken or not isinstance(action, TellUser))
        if outdated:
            raise outdated
        return written

    async def _try(self, key: JobKey, view: JobView, action: Action) -> bool:
        """Carry out an action, unless it was refused just now; return True if it was accepted.

        Raises every error that is not a refusal.
        """
        if self.refusals.waits(key, action):
            return False
        try:
            await self.writer.perform(view, action)
        except errors.KubeError as error:
            if not errors.is_refusal(error):
                raise
            note = self.refusals.add(key, action, error)
            log.log(
                logging.WARNING if note else logging.INFO,
                "%s: %s: %s",
                key,
                type(action).__name__,
                error,
            )
            if note and note.line not in view.facts.notices:
                self.writer.events.emit(view, note)
            return False
        self.refusals.done(key, action)
        return True

    def _rest(self, key: JobKey, state: JobState, due: Plan) -> None:
        self.prober.tidy(state.view)
        self.driver_looks.tidy(state.view)
        self.writer.execs.tidy(state.view)
        times = [at - self.now() for at in (due.wake_at, due.look_at) if at is not None]
        again = self.refusals.again_in(key)
        if again is not None:
            times = [again, *(max(REFUSED_PAUSE, wait) for wait in times)]
        if times:
            self.queue.put_after(key, min(times))


def end_ranks(key: JobKey, pods: Iterable[PodFacts], prober: Prober, *, now: float) -> float | None:
    """End the ranks of those pods whose time is over.

    Return the seconds to the next look; None if no look is needed.

    These workers are being deleted, and their job is gone or has finished. A rank outlives the exec
    that started it, and its driver has ended, so nobody tells it to leave. The grace period that
    our webhook gives a worker (admission/worker_grace) would keep its GPUs for the
    drain-timeout, so such ranks are ended after the period that Kubernetes would have given.
    """
    waits = []
    for pod in pods:
        if pod.ends_at is None or pod.grace is None or pod.grace <= DEFAULT_GRACE:
            continue
        wait = pod.ends_at - pod.grace + DEFAULT_GRACE - now
        if wait <= 0:
            prober.end(key, pod)
            wait = END_AGAIN
        waits.append(wait)
    return min(waits, default=None)

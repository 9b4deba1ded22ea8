"""One look at one job, in four steps.

- see it whole, as the caches have it;
- decide what is due;
- do that, one write after the other;
- look again, until nothing is due; then have published workers and the launcher looked into where that is due, and
  sleep until something changes or the plan says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.controller.scale_metrics import ScaleTimes
from mpijob_elastic.decide import decide, frozen_execs, lost_ranks
from mpijob_elastic.decide.actions import Plan, ProbeWorkers
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.caches import Caches, JobKey

log = logging.getLogger(__name__)

# A scale takes four looks (Role, list, touch, deletions); a job that is never done is looked at again later.
MOST_STEPS = 16
# Seconds until then.
UNDONE_PAUSE = 5.0


class Reconciler:
    """Looks at jobs.

    `put_after(key, seconds)` has one looked at again; `caught_up(key)` is told before each look at it, which sees all
    news so far; `now` gives seconds since the epoch.
    """

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        *,
        prober: Prober,
        execs: Execs,
        scales: ScaleTimes,
        put_after: Callable[[JobKey, float], None],
        caught_up: Callable[[JobKey], None],
        now: Callable[[], float],
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._prober = prober
        self._execs = execs
        self._scales = scales
        self._put_after = put_after
        self._caught_up = caught_up
        self._now = now

    async def reconcile(self, key: JobKey) -> None:
        """Bring one job as far as it can be now. Raises what Writer.perform raises."""
        for _ in range(MOST_STEPS):
            self._caught_up(key)
            view = self._caches.view(key, probes=self._prober.seen, holds=self._execs.held)
            if view is None:
                self._scales.forget(key)
                self._prober.forget(key.namespace, key.name)
                self._execs.forget(key.namespace, key.name)
                return
            plan = decide(view, now=self._now())
            self._scales.watch(key, view, plan)
            for action in plan.actions:
                await self._writer.perform(view, action)
            if not _writes(plan):
                self._sleep(key, view, plan)
                return
        log.warning("%s is not done after %d steps; again in %.0f s", key, MOST_STEPS, UNDONE_PAUSE)
        self._put_after(key, UNDONE_PAUSE)

    def _sleep(self, key: JobKey, view: JobView, plan: Plan) -> None:
        self._prober.tidy(view)
        watch = lost_ranks.watch(view, now=self._now())
        self._prober.watch(view, watch.workers)
        look = frozen_execs.watch(view, now=self._now())
        if look.due and view.launcher:
            self._execs.watch(view, view.launcher, look.about)
        wakes = [at for at in (plan.wake_at, watch.wake_at, look.wake_at) if at is not None]
        if wakes:
            self._put_after(key, max(0.0, min(wakes) - self._now()))


def _writes(plan: Plan) -> bool:
    return any(not isinstance(action, ProbeWorkers) for action in plan.actions)

"""The second decision before a pod is deleted or an exec ended: the same rules, on live objects (safety rule 2)."""

from __future__ import annotations

from collections.abc import Callable

from mpijob_elastic.act import end_execs
from mpijob_elastic.act.writer import Outdated, Recheck
from mpijob_elastic.decide import drain, frozen_execs, handover
from mpijob_elastic.decide.actions import DeleteWorkers, Removal
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import live, views


def rechecking(client: ApiReader, *, probes: views.Probes, judge: live.Judge, now: Callable[[], float]) -> Recheck:
    """What Writer asks; `now` gives seconds since the epoch, `judge` is of live.view."""

    async def recheck(view: JobView, action: DeleteWorkers) -> list[Removal]:
        fresh = await _ours(client, view, probes=probes, judge=judge, now=now())
        if fresh is None:
            raise Outdated(f"{view.namespace}/{view.name} is gone, going, or another operator's by now")
        wanted = {removal.worker.ref.uid for removal in action.removals}
        return [one for one in drain.removals(fresh, now=now()).removals if one.worker.ref.uid in wanted]

    return recheck


def rechecking_execs(
    client: ApiReader, *, probes: views.Probes, judge: live.Judge, now: Callable[[], float]
) -> end_execs.Recheck:
    """What Unfreezer asks; as `rechecking`."""

    async def recheck(view: JobView, execs: tuple[Exec, ...]) -> tuple[Exec, ...]:
        fresh = await _ours(client, view, probes=probes, judge=judge, now=now())
        return frozen_execs.endable(fresh, execs) if fresh and _launcher(fresh) == _launcher(view) else ()

    return recheck


async def _ours(
    client: ApiReader, view: JobView, *, probes: views.Probes, judge: live.Judge, now: float
) -> JobView | None:
    fresh = await live.view(client, namespace=view.namespace, job=view.name, probes=probes, judge=judge)
    if fresh is None or fresh.ref.uid != view.ref.uid or fresh.deleting or handover.reason(fresh, now=now):
        return None
    return fresh


def _launcher(view: JobView) -> tuple[str, float | None] | None:
    """Which launcher, and which start of its container: process ids mean nothing in another."""
    return (view.launcher.ref.uid, view.launcher.started_at) if view.launcher else None

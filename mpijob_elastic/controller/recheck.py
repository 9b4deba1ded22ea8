"""The second decision before a deletion: the same rules, on objects read live (safety rule 2)."""

from __future__ import annotations

from collections.abc import Callable

from mpijob_elastic.act.writer import Outdated, Recheck
from mpijob_elastic.decide import handover, leaving
from mpijob_elastic.decide.actions import DeleteWorkers, Removal
from mpijob_elastic.kube.client import Client
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import live, views


def rechecking(client: Client, *, probes: views.Probes, judge: live.Judge, now: Callable[[], float]) -> Recheck:
    """What Writer asks; `now` gives seconds since the epoch, `judge` is of live.view."""

    async def recheck(view: JobView, action: DeleteWorkers) -> list[Removal]:
        fresh = await live.view(client, namespace=view.namespace, job=view.name, probes=probes, judge=judge)
        if fresh is None or fresh.ref.uid != view.ref.uid or fresh.deleting or handover.reason(fresh, now=now()):
            raise Outdated(f"{view.namespace}/{view.name} is gone, going, or another operator's by now")
        wanted = {removal.worker.ref.uid for removal in action.removals}
        return [one for one in leaving.removals(fresh, now=now()).removals if one.worker.ref.uid in wanted]

    return recheck

"""The second decision, by the same rules on live objects (safety rule 2).

It comes before a pod is deleted or started, and before an exec is ended. A list of the newest pods
may wait for 0.1 s, until the API server hears from etcd that there are no newer ones. So just after
a touch of the launcher the pods are asked for as of that touch, or newer: nothing waits for those.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

from mpijob_elastic.act.looks import Job
from mpijob_elastic.act.writer import SURE_FOR, Confirmed, Outdated, sure_until
from mpijob_elastic.decide import capability, derive, drain, frozen_execs, suspend
from mpijob_elastic.decide.actions import (
    Action,
    DeleteWorkers,
    EndExecs,
    Ungate,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import When
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.observe import live, views
from mpijob_elastic.observe.caches import Caches

# Jobs whose writes are under way at the same time, usually.
JOBS_AT_ONCE = 16


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A job as the API server has it."""

    #: The job; None if it is gone.
    view: JobView | None
    #: The loop's time at which reading began.
    began: float
    #: The loop's time until which deletions may follow.
    until: float


@dataclass(frozen=True, kw_only=True)
class _Touch:
    """A touch of a launcher that was answered."""

    #: The resourceVersion that the launcher got.
    version: str
    #: The loop's time of the answer.
    at: float


@dataclass(eq=False)
class LiveRecheck:
    """Decides again."""

    client: ApiReader
    #: Has the nodes, and the facts that capabilities have from other objects, as last seen.
    caches: Caches
    _: KW_ONLY
    #: Returns the result of probing a pod of a job.
    probes: Callable[[tuple[str, str], str, str], Probe]
    #: Returns the last acknowledgement of a job's launcher, by its uid.
    acknowledged: Callable[[tuple[str, str], str], Acknowledgement]
    #: Adds to a view the time for which each drain has been seen, in seconds.
    timed: Callable[[JobView], JobView]
    #: Reads JSON.
    read: views.Read
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    # The last few views, each with all own writes that are due: a plan for a large scale-in in a
    # queue has hundreds of own writes.
    _decided: deque[tuple[JobView, tuple[Action, ...]]] = field(
        default_factory=partial(deque, maxlen=JOBS_AT_ONCE), init=False
    )
    _touches: dict[Job, _Touch] = field(default_factory=dict, init=False)

    def touched(self, view: JobView, version: str) -> None:
        """Take in that the launcher was touched just now, and has this resourceVersion."""
        self._touches[view.namespace, view.name] = _Touch(version=version, at=_now())

    def forget(self, job: Job) -> None:
        """Forget the touch of a job's launcher."""
        self._touches.pop(job, None)

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        """Return the deletions that still hold.

        Raises Outdated if the job is not ours.
        """
        reading = await self._read(view, pods_since=self._just_touched(view))
        fresh = self._checked(self._state(view, reading.view))
        if fresh is None:
            raise Outdated(
                f"{view.namespace}/{view.name} is gone, being deleted, "
                "or managed by another operator"
            )
        wanted = {removal.worker.ref.uid for removal in action.removals}
        due = [
            removal for removal in drain.leave(fresh).removals if removal.worker.ref.uid in wanted
        ]
        nodes = {removal.worker.facts.node for removal in due if removal.outcome == "lost"}
        there = await self._there(nodes)
        sure = [
            removal
            for removal in due
            if removal.outcome != "lost" or removal.worker.facts.node not in there
        ]
        if nodes:  # they were read as well
            reading = replace(reading, until=sure_until(began=reading.began, ended=_now()))
        return Confirmed(removals=sure, until=reading.until)

    async def suspended(self, view: JobView) -> bool:
        """Tell whether the job is ours and still to be suspended."""
        fresh = await self._ours(view)
        return fresh is not None and fresh.wishes.suspend is not None

    async def free(self, view: JobView, action: Ungate) -> bool:
        """Tell whether these pods may start as the MPIJob is now.

        Each pod is changed at its own version.
        """
        try:
            facts = self.read.job(await self.client.get(MPI_JOBS.path(view.namespace, view.name)))
        except errors.NotFound:
            return False
        if facts.metadata.uid != view.ref.uid:
            return False
        free = {
            gated.ref.uid
            for one in suspend.free(self._derived(views.with_job(view, facts)))
            for gated in one.pods
        }
        return free.issuperset(gated.ref.uid for gated in action.pods)

    async def due(self, view: JobView, action: Action) -> bool:
        """Tell whether an own write of a capability is still due, whoever manages the job."""
        due = next((due for seen, due in self._decided if seen is view), None)
        if due is None:
            fresh = await self._fresh(view)
            steps = capability.own_writes(fresh, When.ANY_TIME) if fresh else ()
            due = tuple(step.write for step in steps if step.write)
            self._decided.append((view, due))
        return action in due

    async def execs(self, view: JobView, action: EndExecs) -> list[Exec]:
        """Return the frozen execs that may still be ended.

        The nodes for whose loss an exec counts as frozen are read last.
        """
        fresh = await self._ours(view)
        if fresh is None or _launcher(fresh.view) != _launcher(view):
            return []
        due = {
            found: fresh.view.worker(found.pod)
            for found in frozen_execs.endable(fresh.view, action.execs)
        }
        there = await self._there(
            worker.facts.node for worker in due.values() if worker and worker.facts.node_gone_at
        )
        return [
            found
            for found, worker in due.items()
            if worker is None or worker.facts.node not in there
        ]

    async def _there(self, nodes: Iterable[str]) -> set[str]:
        """Return those of the nodes, all thought to be gone, that still exist."""
        return {node for node in {*nodes} if not await self.caches.is_node_gone(node)}

    async def _ours(self, view: JobView) -> JobState | None:
        return self._checked(await self._fresh(view))

    @staticmethod
    def _checked(state: JobState | None) -> JobState | None:
        """Return the state of a job of ours that stays; None for any other."""
        return None if state is None or state.foreign or state.view.facts.deleting else state

    async def _fresh(self, view: JobView) -> JobState | None:
        reading = await self._read(view)
        return self._state(view, reading.view)

    def _just_touched(self, view: JobView) -> str:
        """Return the version that the launcher got by a touch a moment ago; "" without one."""
        touch = self._touches.pop((view.namespace, view.name), None)
        if touch is None or _now() >= touch.at + SURE_FOR:
            return ""
        return touch.version

    async def _read(self, view: JobView, *, pods_since: str = "") -> _Reading:
        """Read the job; pods_since: as for live.view."""
        began = _now()
        found = await live.view(
            self.client,
            namespace=view.namespace,
            job=view.name,
            read=self.read,
            probes=partial(self.probes, (view.namespace, view.name)),
            acknowledged=partial(self.acknowledged, (view.namespace, view.name)),
            judge=self.caches.judge,
            pods_since=pods_since,
        )
        return _Reading(view=found, began=began, until=sure_until(began=began, ended=_now()))

    def _state(self, view: JobView, fresh: JobView | None) -> JobState | None:
        """Return the state of the job that the view shows; None if it is gone."""
        if fresh is None or fresh.ref.uid != view.ref.uid:
            return None
        return self._derived(fresh)

    def _derived(self, view: JobView) -> JobState:
        """Derive the state; facts of objects other than the job and its pods are from caches."""
        return derive(self.timed(self.caches.told(view)), now=self.now())


def _launcher(view: JobView) -> tuple[str, float | None] | None:
    """Return the uid and the start of the launcher: process ids of another start mean nothing."""
    return (view.launcher.ref.uid, view.launcher.facts.started_at) if view.launcher else None


def _now() -> float:
    return asyncio.get_running_loop().time()

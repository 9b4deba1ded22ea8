"""The second decision, by the same rules on live objects (safety rule 2).

It comes before a pod is deleted or started, and before an exec is ended. Where deletions follow the
touch of a launcher at once, the job is read while the launcher is touched. A list of pods may wait,
so if that took long, the MPIJob is read once more, because users edit it.
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
    RefreshLauncher,
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
    #: The loop's times at which reading began and ended.
    began: float
    ended: float
    #: The loop's time until which deletions may follow.
    until: float


@dataclass(frozen=True, kw_only=True)
class _Ahead:
    """A job that is read while its launcher is touched."""

    #: The text of the touch.
    text: str
    #: Reads the job; None if it cannot be read.
    reading: asyncio.Future[_Reading | None]

    async def shown_to(self, seen: JobView) -> _Reading | None:
        """Return the job with its launcher as touched.

        None if the view does not show that touch yet, or if the pods were read too long ago. The
        MPIJob may have been read long before the pods, so deletions may follow for a short time.
        """
        shown = seen.launcher
        if shown is None or shown.facts.refreshed != self.text:
            return None
        found = await self.reading
        if found is None or found.view is None or found.view.launcher is None:
            return None
        launcher = found.view.launcher
        if launcher.ref.uid != shown.ref.uid or _now() >= found.ended + SURE_FOR:
            return None
        # The view has its launcher from the answer to the touch, or later from the watch.
        touched = replace(launcher, facts=shown.facts)
        view = replace(found.view, launcher=touched)
        return replace(found, view=view, until=found.began + SURE_FOR)


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
    _ahead: dict[Job, _Ahead] = field(default_factory=dict, init=False)

    def read_ahead(self, view: JobView, touch: RefreshLauncher) -> None:
        """Begin to read the job while its launcher is touched, because deletions follow at once."""
        job = (view.namespace, view.name)
        self.forget(job)
        reading = asyncio.create_task(self._read_quietly(view))
        self._ahead[job] = _Ahead(text=touch.text, reading=reading)

    def forget(self, job: Job) -> None:
        """Forget what was read ahead of a job."""
        ahead = self._ahead.pop(job, None)
        if ahead:
            ahead.reading.cancel()

    async def close(self) -> None:
        """Forget all that was read ahead."""
        readings = [ahead.reading for ahead in self._ahead.values()]
        for job in tuple(self._ahead):
            self.forget(job)
        await asyncio.gather(*readings, return_exceptions=True)

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        """Return the deletions that still hold.

        Raises Outdated if the job is not ours.
        """
        reading = await self._read_for(view, action)
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

    async def _read_for(self, view: JobView, action: DeleteWorkers) -> _Reading:
        """Return the job as it was read ahead, as far as that still counts, else as it is now."""
        found = await self._read_before(view)
        if found is None or found.view is None:
            return await self._read(view)
        if any(removal.outcome == "lost" for removal in action.removals):
            return await self._read(view)
        if _now() < found.until:
            return found
        return await self._edited(found.view)

    async def _edited(self, found: JobView) -> _Reading:
        """Return a job that was read ahead, with its MPIJob as it is now.

        Its pods may have changed since, too, so each is deleted at its own version.
        """
        began = _now()
        raw = await self.client.find(MPI_JOBS.path(found.namespace, found.name))
        facts = None if raw is None else self.read.job(raw)
        edited = None
        if facts and facts.metadata.uid == found.ref.uid:
            edited = views.with_job(found, facts)
        return _reading(edited, began=began)

    async def _read_before(self, view: JobView) -> _Reading | None:
        """Return the job as it was read ahead; None if that does not count any more."""
        # Whoever is cancelled while awaiting a reading cancels the reading, too, so it is taken out
        # first: to await it again would cancel the next one who does.
        ahead = self._ahead.pop((view.namespace, view.name), None)
        if ahead is None:
            return None
        try:
            return await ahead.shown_to(view)
        finally:
            ahead.reading.cancel()

    async def _read_quietly(self, view: JobView) -> _Reading | None:
        """Read the job; return None if it cannot be read, because it is read again then."""
        try:
            return await self._read(view)
        except Exception:  # noqa: BLE001 - reading it again raises the error where it is awaited
            return None

    async def _read(self, view: JobView) -> _Reading:
        began = _now()
        found = await live.view(
            self.client,
            namespace=view.namespace,
            job=view.name,
            read=self.read,
            probes=partial(self.probes, (view.namespace, view.name)),
            acknowledged=partial(self.acknowledged, (view.namespace, view.name)),
            judge=self.caches.judge,
        )
        return _reading(found, began=began)

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


def _reading(view: JobView | None, *, began: float) -> _Reading:
    """Return what was read until now."""
    ended = _now()
    return _Reading(view=view, began=began, ended=ended, until=sure_until(began=began, ended=ended))


def _now() -> float:
    return asyncio.get_running_loop().time()

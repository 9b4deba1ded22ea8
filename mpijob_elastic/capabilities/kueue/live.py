"""The watch of Kueue's Workloads, and the writes to them and to the pods that start.

The requests of a Workload, its conditions and its flavors are read live, because no cache keeps
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.capability_writes import Additions, LiveWrites, add_nothing, check_size
from mpijob_elastic.act.writer import Outdated
from mpijob_elastic.capabilities.kueue import Kueue, actions, facts, words
from mpijob_elastic.capabilities.kueue.actions import (
    ClearWorkload,
    CreateWorkload,
    FinishWorkload,
    MarkReady,
    Object,
)
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS, Asked, Queue, Workload
from mpijob_elastic.capabilities.kueue.wishes import set_of, workload_of
from mpijob_elastic.decide.actions import Action, Ungate
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching


class WorkloadWatch:
    """The watch of the Workloads that we made."""

    def __init__(self, watching: Watching) -> None:
        ours = f"{names.LABEL_MANAGED_BY}={names.PROGRAM}"
        self._found: ByJob[Workload] = watching.by_job(WORKLOADS, facts.read, selector=ours)

    def seen(self, key: JobKey, view: JobView) -> Kueue | None:
        """Return what Kueue says of a job; None if Kueue has nothing to do with the job."""
        job, found = view.facts.of(Asked) or Asked(), self._found.of(key)
        if self._found.known is None or (job.elsewhere and not self._found.known):
            return Kueue(None)
        if not (job.queue or found or job.elsewhere):
            return (
                Kueue(facts.NO_QUEUE) if Kueue.told(view) else None
            )  # its label is gone, but its pods still wait
        if not self._found.known:
            return Kueue(Queue(ignored=job.queue))
        return Kueue(facts.of(view.facts, found.values(), all_known=self._found.values()))


@dataclass(kw_only=True, eq=False)
class Workloads(LiveWrites):
    """Carries out the writes of Workloads."""

    kinds = (CreateWorkload, MarkReady, ClearWorkload, FinishWorkload)

    # The missing priority class of which a job was told, by namespace and name of the job.
    missing: dict[tuple[str, str], str] = field(default_factory=dict, init=False)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self.missing.pop((namespace, name), None)

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out an action; see `CapabilityWriter`."""
        match action:
            case CreateWorkload():
                await self._create(view, action)
            case MarkReady() | FinishWorkload() | ClearWorkload():
                await self._mark(view, action)

    async def _create(self, view: JobView, action: CreateWorkload) -> None:
        pods = [
            await self.read(resources.PODS, like.like.name, view.namespace) for like in action.pods
        ]
        priority = (
            await self._priority(view, action.priority_class)
            if action.priority_class
            else action.priority
        )
        body = actions.created(view, action, pods=pods, priority=priority)
        check_size(body)
        answer = await self.leader_writer.create_object(
            WORKLOADS, namespace=view.namespace, body=body
        )
        self.seen.see(WORKLOADS, answer)

    async def _priority(self, view: JobView, name: str) -> int:
        try:
            found = await self.read(facts.WORKLOAD_PRIORITIES, name)
        except errors.NotFound:
            if (
                self.missing.get((view.namespace, view.name)) != name
            ):  # each try would make another Event
                self.events.emit(view, words.no_class(view, name))
                self.missing[view.namespace, view.name] = name
            raise
        self.forget(view.namespace, view.name)
        value: int = found["value"]
        return value

    async def starting(self, view: JobView, action: Ungate) -> Additions:
        """Read live whether these pods still have the quota with which they start.

        Raises Outdated if they do not.
        """
        await self._check(view, action)
        return partial(self._place, view, action) if action.adds else add_nothing

    async def _check(self, view: JobView, action: Ungate) -> None:
        queue = _queue(view)
        if not queue.name:
            return
        starting = {gated.ref.name for gated in action.pods}
        found = (workload_of(view, queue, pod) for pod in view.pods if pod.ref.name in starting)
        for name in dict.fromkeys(one.metadata.name for one in found if one):
            raw = await self.client.get(WORKLOADS.path(view.namespace, name))
            if not facts.read(raw).granted:
                self.seen.see(WORKLOADS, raw)
                raise Outdated(
                    f"{view.namespace}/{view.name}: Workload {name} is not granted any more"
                )

    async def _place(self, view: JobView, action: Ungate, pod: Identity) -> Sequence[Object]:
        """Return the operations that bind a pod to the nodes of its flavors.

        They also add what AdmissionChecks ask for.
        """
        added = [actions.of_flavor(await self.read(facts.FLAVORS, name)) for name in action.adds]
        added += await self._updates(view, pod)
        live = await self.read(resources.PODS, pod.name, view.namespace)
        return [
            {"op": "test", "path": "/metadata/uid", "value": pod.uid},
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": live["metadata"]["resourceVersion"],
            },
            *actions.placed(live, added),
        ]

    async def _updates(self, view: JobView, pod: Identity) -> list[Object]:
        mine = view.worker(pod.name) or view.launcher
        found = workload_of(view, _queue(view), mine) if mine else None
        if found is None or mine is None or not found.updates:
            return []
        return actions.updates(
            await self.read(WORKLOADS, found.metadata.name, view.namespace), set_of(mine)
        )

    async def _mark(
        self, view: JobView, action: MarkReady | ClearWorkload | FinishWorkload
    ) -> None:
        found = action.workload.metadata
        raw = await self.client.get(WORKLOADS.path(view.namespace, found.name))
        live = facts.read(raw)
        if live.metadata.uid != found.uid:
            return self.seen.see_gone(WORKLOADS, view.namespace, found)
        if isinstance(action, ClearWorkload) and not live.preempted:
            # The Workload has finished, or a former leader has given its quota back: Kueue may have
            # granted it again, so pods may run.
            return self.seen.see(WORKLOADS, raw)
        body = actions.marked(view, action, msgspec.json.decode(raw), now=self.now())
        answer = await self.leader_writer.patch_object(
            WORKLOADS, namespace=view.namespace, name=found.name, subresource="status", body=body
        )
        return self.seen.see(WORKLOADS, answer)


def _queue(view: JobView) -> Queue:
    known = view.of(Kueue)
    return (known and known.queue) or facts.NO_QUEUE

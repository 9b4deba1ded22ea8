"""The watch of Kueue's Workloads, and the writes to them and to the pods that start.

The requests of a Workload, its conditions and its flavors are read live, because no cache keeps
them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.capability_writes import Additions, LiveWrites, add_nothing, check_size
from mpijob_elastic.act.writer import Outdated
from mpijob_elastic.capabilities.kueue import Kueue, actions, facts, topology, wishes, words
from mpijob_elastic.capabilities.kueue.actions import (
    ClearWorkload,
    CreateWorkload,
    FinishWorkload,
    MarkReady,
    Object,
)
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS, Asked, Queue, Workload
from mpijob_elastic.capabilities.kueue.topology import Domain
from mpijob_elastic.capabilities.kueue.wishes import set_of, workload_of
from mpijob_elastic.decide import demand
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
        priority_class = await self._class(view, action)
        priority = action.priority
        if priority_class:
            priority = await self._priority(view, priority_class)
        action = replace(action, priority_class=priority_class)
        near = await self._near(view, action, pods[-1])
        body = actions.created(view, action, pods=pods, priority=priority, near=near)
        check_size(body)
        answer = await self.leader_writer.create_object(
            WORKLOADS, namespace=view.namespace, body=body
        )
        self.seen.see(WORKLOADS, answer)

    async def _near(
        self, view: JobView, action: CreateWorkload, pod: Object
    ) -> Mapping[str, str] | None:
        """Return the label of the domain in which all workers of the job have to be, for an extra.

        None for the base, and if the domain cannot be learned; Kueue then takes any.
        """
        base = _queue(view).base(view.name)
        level = (pod["metadata"].get("annotations") or {}).get(topology.REQUIRED)
        if base is None or level is None or action.name == base.metadata.name:
            return None
        assigned = topology.domains(base.topology.get(demand.WORKERS, b"null"))
        if not assigned:
            return None
        labels = assigned[0].labels
        if level not in labels and assigned[0].node:
            with suppress(errors.NotFound, errors.Forbidden):
                node = await self.read(resources.NODES, assigned[0].node)
                labels = node["metadata"].get("labels") or {}
        return {level: labels[level]} if level in labels else None

    async def _class(self, view: JobView, action: CreateWorkload) -> str:
        """Return the priority class of a Workload: that of the job, or of a base the default; "".

        An extra has a priority below that of its base, and no class.
        """
        if action.priority_class or action.name != names.launcher(view.name):
            return action.priority_class
        with suppress(errors.NotFound, errors.Forbidden):
            await self.read(facts.WORKLOAD_PRIORITIES, facts.DEFAULT_PRIORITY_CLASS)
            return facts.DEFAULT_PRIORITY_CLASS
        return ""

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
        queue = await self._check(view, action)
        if not action.adds:
            return add_nothing
        domains = wishes.assigned(view, queue, now=self.now())
        return partial(self._place, view, action, queue, domains)

    async def _check(self, view: JobView, action: Ungate) -> Queue:
        """Return the queue with the Workloads of these pods as they are now.

        Raises Outdated if one of these is not granted any more.
        """
        queue = _queue(view)
        if not queue.name:
            return queue
        live = dict(queue.workloads)
        starting = {gated.ref.name for gated in action.pods}
        found = (workload_of(view, queue, pod) for pod in view.pods if pod.ref.name in starting)
        for name in dict.fromkeys(one.metadata.name for one in found if one):
            raw = await self.client.get(WORKLOADS.path(view.namespace, name))
            live[name] = facts.read(raw)
            if not live[name].granted:
                self.seen.see(WORKLOADS, raw)
                raise Outdated(
                    f"{view.namespace}/{view.name}: Workload {name} is not granted any more"
                )
        return replace(queue, workloads=live)

    async def _place(
        self,
        view: JobView,
        action: Ungate,
        queue: Queue,
        domains: Mapping[str, Domain],
        pod: Identity,
    ) -> Sequence[Object]:
        """Return the operations that bind a pod to the nodes of its flavors, or to its own node.

        They also add what AdmissionChecks ask for.
        """
        added = [actions.of_flavor(await self.read(facts.FLAVORS, name)) for name in action.adds]
        added += await self._updates(view, pod)
        live = await self.read(resources.PODS, pod.name, view.namespace)
        added += _assigned(view, queue, domains, live)
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


def _assigned(
    view: JobView, queue: Queue, domains: Mapping[str, Domain], live: Object
) -> list[Object]:
    """Return what a pod as just read gets with the domain that Kueue assigns; [] if it needs none.

    Raises Outdated if Kueue has to assign the pod another domain first.
    """
    name: str = live["metadata"]["name"]
    mine = view.worker(name) or view.launcher
    found = workload_of(view, queue, mine) if mine else None
    if mine is None or found is None or set_of(mine) not in found.topology:
        return []
    if name not in domains:
        raise Outdated(f"{view.namespace}/{name}: Kueue has yet to assign it another node")
    annotations = live["metadata"].get("annotations") or {}
    return [
        topology.additions(domains[name], workload=found.metadata.name, annotations=annotations)
    ]


def _queue(view: JobView) -> Queue:
    known = view.of(Kueue)
    return (known and known.queue) or facts.NO_QUEUE

"""Writes to Kueue's Workloads, and to the pods that start with their quota, one function each.

What a Workload asks for, its conditions and its flavors are read live, because no cache keeps them.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from mpijob_elastic.act import workload_bodies
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate, for_each
from mpijob_elastic.act.workload_bodies import Object
from mpijob_elastic.act.writer import Seen
from mpijob_elastic.decide import workloads
from mpijob_elastic.decide.actions import (
    ClearWorkload,
    CreateWorkload,
    FinishWorkload,
    Gated,
    MarkReady,
    QueueWrite,
    StartPods,
)
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import JobView


class Workloads:
    """Carries out the actions of a queue; now: returns seconds since the epoch."""

    def __init__(
        self,
        client: ApiReader,
        gate: Gate,
        seen: Seen,
        *,
        events: Events,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._gate = gate
        self._seen = seen
        self._events = events
        self._now = now
        # The priority class that a job was told to be missing, by namespace and name of the job.
        self._missing: dict[tuple[str, str], str] = {}

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self._missing.pop((namespace, name), None)

    async def perform(self, view: JobView, action: QueueWrite) -> None:
        """Carry out an action.

        Raises errors.KubeError or NotLeader; it is then unknown whether anything has changed.
        """
        match action:
            case CreateWorkload():
                await self._create(view, action)
            case StartPods():
                flavors = [await self._read(resources.FLAVORS, name) for name in action.flavors]
                await for_each(action.pods, partial(self._start, view, flavors))
                self._events.emit(view, action.note)
            case MarkReady() | FinishWorkload() | ClearWorkload():
                await self._mark(view, action)

    async def _create(self, view: JobView, action: CreateWorkload) -> None:
        pods = [await self._read(resources.PODS, like.like.name, view.namespace) for like in action.pods]
        priority = action.priority
        if action.priority_class:
            priority = await self._priority(view, action.priority_class)
        body = workload_bodies.created(view, action, pods=pods, priority=priority)
        answer = await self._gate.create_object(resources.WORKLOADS, namespace=view.namespace, body=body)
        self._seen.see(resources.WORKLOADS, answer)

    async def _priority(self, view: JobView, name: str) -> int:
        try:
            found = await self._read(resources.WORKLOAD_PRIORITIES, name)
        except errors.NotFound:
            if self._missing.get((view.namespace, view.name)) != name:  # each try would make another Event
                self._events.emit(view, workloads.no_class(view, name))
                self._missing[view.namespace, view.name] = name
            raise
        self.forget(view.namespace, view.name)
        value: int = found["value"]
        return value

    async def _start(self, view: JobView, flavors: Sequence[Object], gated: Gated) -> None:
        pod = await self._read(resources.PODS, gated.ref.name, view.namespace)
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": gated.ref.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": pod["metadata"]["resourceVersion"]},
            {"op": "replace", "path": "/spec/schedulingGates", "value": [{"name": gate} for gate in gated.kept]},
            *workload_bodies.placed(pod, flavors),
        ]
        answer = await self._gate.patch_object(
            resources.PODS, namespace=view.namespace, name=gated.ref.name, body=patch
        )
        self._seen.see(resources.PODS, answer)

    async def _mark(self, view: JobView, action: MarkReady | ClearWorkload | FinishWorkload) -> None:
        found = action.workload.metadata
        workload = await self._read(resources.WORKLOADS, found.name, view.namespace)
        if workload["metadata"]["uid"] != found.uid:
            return self._seen.see_gone(resources.WORKLOADS, view.namespace, found)
        if isinstance(action, ClearWorkload) and not workload_bodies.is_preempted(workload):
            # A former leader has given it back already. Kueue may have granted it again, so pods may run.
            return self._seen.see(resources.WORKLOADS, msgspec.json.encode(workload))
        body = workload_bodies.marked(view, action, workload, now=self._now())
        answer = await self._gate.patch_object(
            resources.WORKLOADS,
            namespace=view.namespace,
            name=found.name,
            subresource="status",
            body=body,
        )
        return self._seen.see(resources.WORKLOADS, answer)

    async def _read(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        found: Object = msgspec.json.decode(await self._client.get(resource.path(namespace, name)))
        return found

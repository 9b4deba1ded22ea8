"""Every write on behalf of a job, one function each.

Preconditions: a ConfigMap and a Role are written at the resourceVersion that was decided upon; a pod is deleted at its
uid and resourceVersion as just read; a size is set at the version, and from the size, that was decided upon; an
annotation and the selector are patched under their object's uid. What the API server answers is handed to `Seen` at
once, so the next decision sees it. A refusal is raised, and the job is looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act import end_execs
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    LowerPodGroup,
    RefreshLauncher,
    Removal,
    RollBack,
    TellUser,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH
from mpijob_elastic.model import memory_text
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Launcher, Ref
from mpijob_elastic.telemetry.metrics import Metrics

# Takes which execs of a launcher were tried to be ended, and whether nothing is left of each.
Tried = Callable[[Launcher, Mapping[Exec, bool]], None]

# Of one job: a large scale-in need not wait for answer after answer, and no crowd of connections is opened for it.
DELETIONS_AT_ONCE = 4


class Outdated(Exception):
    """What was decided from the caches does not hold live (any more)."""


class Recheck(Protocol):
    """Decides once more, from objects read live."""

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        """Return the deletions that still hold, at their live versions. Raises Outdated where the job is not ours."""

    async def execs(self, view: JobView, action: EndExecs) -> tuple[Exec, ...]:
        """Return the frozen execs that may still be ended."""


class Seen(Protocol):
    """Takes in what the API server answered to a write: an object's JSON, or that a pod is gone."""

    def see(self, resource: resources.Resource, raw: bytes) -> None:
        """An object as it is after our write."""

    def see_pod_gone(self, namespace: str, ref: Ref) -> None:
        """A pod that does not exist any more."""


class Writer:
    """Carries out actions."""

    def __init__(
        self, gate: Gate, seen: Seen, *, recheck: Recheck, tried: Tried, events: Events, metrics: Metrics
    ) -> None:
        self._gate = gate
        self._seen = seen
        self._recheck = recheck
        self._tried = tried
        self._events = events
        self._metrics = metrics

    async def perform(self, view: JobView, action: Action) -> None:
        """Do one action. Raises errors.KubeError, NotLeader or Outdated; then nothing is known to have changed."""
        match action:
            case WriteRole():
                await self._write_role(view, action)
            case WriteConfig():
                await self._write_config(view, action)
            case RefreshLauncher():
                await self._refresh_launcher(view, action)
            case DeleteWorkers():
                await self._delete_workers(view, action)
            case DeleteLauncher():
                await self._delete_pod(view.namespace, action.launcher.ref)
                self._events.emit(view, action.note)
            case TellUser():
                await self._tell_user(view, action)
            case WriteSelector():
                await self._write_selector(view, action)
            case LowerPodGroup() | RollBack():
                await self._set_size(view, action)
            case EndExecs():
                await self._end_execs(view, action)

    async def _write_role(self, view: JobView, action: WriteRole) -> None:
        patch = [
            # Setting the resourceVersion makes the API server refuse the patch where it is another by now.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": action.ref.resource_version},
            {"op": "test", "path": f"/rules/{action.exec_rule}/resources", "value": ["pods/exec"]},
            {"op": "add", "path": f"/rules/{action.exec_rule}/resourceNames", "value": list(action.exec_names)},
        ]
        answer = await self._gate.patch_object(
            resources.ROLES,
            namespace=view.namespace,
            name=action.ref.name,
            body=patch,
            content_type=JSON_PATCH,
        )
        self._seen.see(resources.ROLES, answer)
        self._events.emit(view, action.note)

    async def _write_config(self, view: JobView, action: WriteConfig) -> None:
        data = {names.KEY_DISCOVER_HOSTS: action.script, names.KEY_HOSTFILE: action.hostfile}
        if action.kubexec is not None:
            data[names.KEY_KUBEXEC] = action.kubexec
        patch = {
            "metadata": {
                "uid": action.ref.uid,
                "resourceVersion": action.ref.resource_version,
                "annotations": {names.MEMORY: memory_text.render(action.memory)},
            },
            "data": data,
        }
        answer = await self._gate.patch_object(
            resources.CONFIG_MAPS,
            namespace=view.namespace,
            name=action.ref.name,
            body=patch,
            content_type=MERGE_PATCH,
        )
        self._seen.see(resources.CONFIG_MAPS, answer)
        for note in action.notes:
            self._events.emit(view, note)

    async def _refresh_launcher(self, view: JobView, action: RefreshLauncher) -> None:
        await self._annotate(resources.PODS, view.namespace, action.launcher.ref, names.REFRESHED, action.digest)

    async def _tell_user(self, view: JobView, action: TellUser) -> None:
        await self._annotate(resources.MPI_JOBS, view.namespace, action.ref, names.STATUS, action.text or None)
        for note in action.notes:
            self._events.emit(view, note)

    async def _write_selector(self, view: JobView, action: WriteSelector) -> None:
        patch = [
            # Of a patch of the status the API server takes nothing else, so a uid in a merge patch would not count.
            {"op": "test", "path": "/metadata/uid", "value": action.ref.uid},
            {"op": "add", "path": "/status/replicaStatuses/Worker/selector", "value": action.selector},
        ]
        answer = await self._gate.patch_object(
            resources.MPI_JOBS,
            namespace=view.namespace,
            name=action.ref.name,
            subresource="status",
            body=patch,
            content_type=JSON_PATCH,
        )
        self._seen.see(resources.MPI_JOBS, answer)

    async def _set_size(self, view: JobView, action: LowerPodGroup | RollBack) -> None:
        if isinstance(action, LowerPodGroup):
            resource, path, size = resources.POD_GROUPS, "/spec/minMember", action.min_member
        else:
            resource, path, size = resources.MPI_JOBS, "/spec/mpiReplicaSpecs/Worker/replicas", action.replicas
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": action.ref.resource_version},
            {"op": "test", "path": "/metadata/uid", "value": action.ref.uid},
            {"op": "test", "path": path, "value": action.before},
            {"op": "replace", "path": path, "value": size},
        ]
        answer = await self._gate.patch_object(
            resource,
            namespace=view.namespace,
            name=action.ref.name,
            body=patch,
            content_type=JSON_PATCH,
        )
        self._seen.see(resource, answer)
        self._events.emit(view, action.note)

    async def _end_execs(self, view: JobView, action: EndExecs) -> None:
        outcomes = await end_execs.end(self._gate, view, action, recheck=self._recheck.execs, metrics=self._metrics)
        self._tried(action.launcher, {found: outcome != end_execs.FAILED for found, outcome in outcomes.items()})
        if ended := [found for found, outcome in outcomes.items() if outcome == end_execs.ENDED]:
            self._events.emit(view, frozen_execs.ended(view, ended))

    async def _annotate(
        self, resource: resources.Resource, namespace: str, ref: Ref, key: str, value: str | None
    ) -> None:
        # No resourceVersion: the annotation is ours alone, and a status update beside it is no conflict.
        answer = await self._gate.patch_object(
            resource,
            namespace=namespace,
            name=ref.name,
            body={"metadata": {"uid": ref.uid, "annotations": {key: value}}},
            content_type=MERGE_PATCH,
        )
        self._seen.see(resource, answer)

    async def _delete_workers(self, view: JobView, action: DeleteWorkers) -> None:
        sure = await self._recheck.removals(view, action)
        slots = asyncio.Semaphore(DELETIONS_AT_ONCE)

        async def delete(removal: Removal) -> None:
            async with slots:
                await self._delete_worker(view, removal)

        # Each is awaited even where one fails, so that nothing is under way any more when the job is looked at again.
        outcomes = await asyncio.gather(*map(delete, sure), return_exceptions=True)
        for failure in filter(None, outcomes):
            raise failure
        if len(sure) < len(action.removals):
            raise Outdated(f"{len(action.removals) - len(sure)} workers may not be deleted any more")

    async def _delete_worker(self, view: JobView, removal: Removal) -> None:
        try:
            await self._delete_pod(view.namespace, removal.worker.ref)
        except errors.Unreachable:
            # It may be gone; nobody would tell of it then, and being told twice is better than not at all.
            self._events.emit(view, removal.note)
            raise
        self._metrics.deleted(removal.outcome)
        self._events.emit(view, removal.note)

    async def _delete_pod(self, namespace: str, ref: Ref) -> None:
        try:
            answer = await self._gate.delete_object(
                resources.PODS, namespace=namespace, name=ref.name, uid=ref.uid, resource_version=ref.resource_version
            )
        except errors.NotFound:
            self._seen.see_pod_gone(namespace, ref)
            return
        # A pod that is given time to end is answered as it is, one that went at once as it was or as a Status; one that
        # somebody else's deletion finished meanwhile, without a version.
        found = msgspec.json.decode(answer, type=_Answer)
        if found.kind != resources.PODS.kind:
            return
        if found.metadata.resource_version:
            self._seen.see(resources.PODS, answer)
        else:
            self._seen.see_pod_gone(namespace, ref)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

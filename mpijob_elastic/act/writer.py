"""Writes on behalf of a job: a patch, a creation or a deletion for an action, or several requests.

An action has its precondition. A ConfigMap is written at the resourceVersion that was decided on. A
pod is deleted at its uid and resourceVersion as just read. The answer of the API server goes to
`Seen` at once, so the next decision sees the new state. Every error is raised; the reconciler tells
refusals, which hold back one action, from conflicts, which outdate the plan, and from an absent
server (`kube.errors.is_refusal`).
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.capability_writes import Additions, CapabilityWriter, Seen
from mpijob_elastic.act.deletions import Deletions
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.leader_writer import Altered, LeaderWriter, NotLeader, for_each
from mpijob_elastic.act.looks import Job
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.decide.actions import (
    Action,
    Create,
    Delete,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    Gated,
    Object,
    Operations,
    Patch,
    RefreshLauncher,
    Removal,
    Ungate,
    WriteConfig,
)
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.memory import render_memory
from mpijob_elastic.model.pod import RefusedTouch
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Deletions of a job that are under way at once: a large scale-in waits for fewer answers, and still
# opens few connections.
DELETIONS_AT_ONCE = 4
# Seconds for which deletions follow a decision on live objects; then the decision is made again. If
# reading the objects took longer, deletions follow for as long as the reading took, so that a slow
# API server spends no more on reading than on deleting.
SURE_FOR = 0.1


class Outdated(Exception):
    """The live objects no longer allow an action that was decided from the caches."""


def sure_until(*, began: float, ended: float) -> float:
    """Return until when deletions may follow objects that were read between two times."""
    return ended + max(SURE_FOR, ended - began)


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """Deletions that still hold."""

    #: The deletions, at the live versions of their pods.
    removals: Sequence[Removal]
    #: The loop's time until which they may be carried out.
    until: float


class Recheck(Protocol):
    """Decides again, from objects read live."""

    def touched(self, view: JobView, version: str) -> None:
        """Take in that the launcher was touched just now, and has this resourceVersion."""

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        """Return the deletions that still hold.

        Raises Outdated if the job is not ours.
        """

    def forget(self, job: Job) -> None:
        """Forget a job that is gone."""

    async def suspended(self, view: JobView) -> bool:
        """Tell whether the job is still to be suspended."""

    async def free(self, view: JobView, action: Ungate) -> bool:
        """Tell whether these pods may still start."""

    async def execs(self, view: JobView, action: EndExecs) -> Sequence[Exec]:
        """Return the frozen execs that may still be ended."""

    async def due(self, view: JobView, action: Action) -> bool:
        """Tell whether an own write of a capability is still due."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Writer:
    """Carries out actions."""

    leader_writer: LeaderWriter
    seen: Seen
    recheck: Recheck
    execs: Execs
    events: Events
    metrics: Metrics
    capability_writers: Sequence[CapabilityWriter] = ()
    deletions: Deletions = field(default_factory=Deletions)
    # Refused touches by job. In memory alone: after a restart the touch is tried again at once.
    _refused: dict[Job, RefusedTouch] = field(default_factory=dict, init=False)

    def informed(self, view: JobView) -> JobView:
        """Return the view with our deletions, and the refusal of the launcher's last touch.

        A refusal for another change than the present one is left out.
        """
        if deleted := self.deletions.seen(view):
            view = replace(view, deleted=deleted)
        found, launcher, config = (
            self._refused.get((view.namespace, view.name)),
            view.launcher,
            view.config,
        )
        if not (found and launcher and config) or (found.tries.uid, found.change) != (
            launcher.ref.uid,
            config.digest,
        ):
            return view
        return replace(view, launcher=replace(launcher, refused=found))

    def forget(self, job: Job) -> None:
        """Forget a job that is gone."""
        self._refused.pop(job, None)
        self.deletions.forget(job)
        self.recheck.forget(job)
        for one in self.capability_writers:
            one.forget(*job)

    async def jobless(self, job: Job) -> None:
        """Do the writes that are due for a job that does not exist.

        Raises errors.KubeError or NotLeader.
        """
        for one in self.capability_writers:
            await one.jobless(*job)

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out an action.

        Raises errors.KubeError, NotLeader or Outdated: the action may have changed something.
        """
        if action.rechecked and not await self.recheck.due(view, action):
            raise Outdated(f"{view.namespace}/{view.name}: {action.says()}: not due any more")
        for one in self.capability_writers:
            if isinstance(action, one.kinds):
                return await one.perform(view, action)
        await self._perform(view, action)
        for note in action.notes:
            self.events.emit_on(*(action.told_on or (resources.MPI_JOBS, view.ref)), note)
        return None

    async def _perform(self, view: JobView, action: Action) -> None:
        match action:
            case RefreshLauncher():
                await self._refresh(view, action)
            case Patch():
                await self._patch(view, action)
            case Create():
                await self._create(view, action)
            case Delete():
                await self._delete(view, action.resource, action.ref, at_version=action.at_version)
            case WriteConfig():
                await self._write_config(view, action)
            case DeleteWorkers():
                await self._delete_workers(view, action)
            case DeleteLauncher():
                await self._delete_launcher(view, action)
            case Ungate():
                await self._free(view, action)
            case EndExecs():
                self.execs.begin_to_end(view, action, partial(self._end_execs, view, action))

    async def _patch(self, view: JobView, action: Patch) -> bytes:
        answer = await self.leader_writer.patch_object(
            action.resource,
            namespace=view.namespace,
            name=action.ref.name,
            subresource=action.subresource,
            body=action.body(),
        )
        self._took(action, answer)
        return answer

    async def _create(self, view: JobView, action: Create) -> None:
        answer = await self.leader_writer.create_object(
            action.resource, namespace=view.namespace, body=action.body()
        )
        self._took(action, answer)

    def _took(self, action: Patch | Create, answer: bytes) -> None:
        self.seen.see(action.resource, answer)
        if not _holds(msgspec.json.decode(answer), action.kept()):
            raise Altered(
                f"an admission plugin changes what is written to the {action.resource.kind}"
            )

    async def _write_config(self, view: JobView, action: WriteConfig) -> None:
        ref = action.ref
        data = {names.KEY_DISCOVER_HOSTS: action.script, names.KEY_HOSTFILE: action.hostfile}
        if action.kubexec is not None:
            data[names.KEY_KUBEXEC] = action.kubexec
        if action.elastic is not None:
            data[names.KEY_ELASTIC] = action.elastic
        metadata = {
            "uid": ref.uid,
            "resourceVersion": ref.resource_version,
            "annotations": {names.MEMORY: render_memory(action.memory), **action.annotations},
        }
        patch = {"metadata": metadata, "data": data}
        answer = await self.leader_writer.patch_object(
            resources.CONFIG_MAPS, namespace=view.namespace, name=ref.name, body=patch
        )
        self.metrics.lost_workers.inc(len(action.lost))
        self.seen.see(resources.CONFIG_MAPS, answer)

    async def _free(self, view: JobView, action: Ungate) -> None:
        if not await self.recheck.free(view, action):
            raise Outdated(f"{view.namespace}/{view.name}: its MPIJob holds its pods back again")
        additions = [await one.starting(view, action) for one in self.capability_writers]
        for refused in await for_each(deque(action.pods), partial(self._ungate, view, additions)):
            raise refused

    async def _ungate(self, view: JobView, additions: Sequence[Additions], gated: Gated) -> None:
        kept = [{"name": gate} for gate in gated.kept]
        placed = [operation for add in additions for operation in await add(gated.ref)]
        same = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": gated.ref.resource_version,
        }
        patch = [
            *(placed or [same]),
            {"op": "replace", "path": "/spec/schedulingGates", "value": kept},
        ]
        try:
            answer = await self.leader_writer.patch_object(
                resources.PODS, namespace=view.namespace, name=gated.ref.name, body=patch
            )
        except errors.NotFound:
            self.seen.see_gone(resources.PODS, view.namespace, gated.ref)
        else:
            self.seen.see(resources.PODS, answer)

    async def _end_execs(self, view: JobView, action: EndExecs) -> Mapping[Exec, bool]:
        """Try to end execs; return each with True if it is gone."""
        outcomes: dict[Exec, str] = {}
        try:
            if frozen := await self.recheck.execs(view, action):
                outcomes = dict.fromkeys(frozen, launcher_execs.FAILED)
                outcomes |= await launcher_execs.end(
                    self.leader_writer, view.namespace, action.launcher, frozen
                )
        except (errors.KubeError, NotLeader) as error:
            log.warning(
                "frozen execs of %s/%s not ended: %s",
                view.namespace,
                action.launcher.ref.name,
                error,
            )
        for outcome in outcomes.values():
            self.metrics.ended_execs.labels(outcome).inc()
        if ended := [
            found for found, outcome in outcomes.items() if outcome == launcher_execs.ENDED
        ]:
            self.events.emit(view, frozen_execs.ended(view, ended))
        return {
            found: outcomes.get(found, launcher_execs.FAILED) != launcher_execs.FAILED
            for found in action.execs
        }

    async def _refresh(self, view: JobView, action: RefreshLauncher) -> None:
        """Touch the launcher.

        A refusal is remembered and not raised, so that the refusal holds up no other action. Errors
        that are raised say nothing of it, so earlier refusals still count.
        """
        job = (view.namespace, view.name)
        try:
            answer = await self._patch(view, action)
        except errors.ApiError as error:
            if isinstance(error, errors.Conflict | errors.NotFound | errors.Throttled):
                raise
            log.warning("%s/%s is not touched: %s", view.namespace, action.ref.name, error)
            change = action.text.partition("@")[0]
            refused = RefusedTouch(change=change, tries=action.tries, reason=error.message)
            self._refused[job] = refused
        else:
            self._refused.pop(job, None)
            version = msgspec.json.decode(answer, type=_Answer).metadata.resource_version
            self.recheck.touched(view, version)

    async def _delete_launcher(self, view: JobView, action: DeleteLauncher) -> None:
        if action.suspends and not await self.recheck.suspended(view):
            raise Outdated(f"{view.namespace}/{view.name} is not suspended any more")
        await self._delete(view, resources.PODS, action.launcher.ref, grace=0)

    async def _delete_workers(self, view: JobView, action: DeleteWorkers) -> None:
        left, changed = deque(action.removals), 0
        refused: list[errors.KubeError] = []
        while left:
            sure = await self.recheck.removals(view, DeleteWorkers(removals=tuple(left)))
            changed += len(left) - len(sure.removals)
            left = deque(sure.removals)
            delete = partial(self._delete_worker, view)
            refused += await for_each(left, delete, at_once=DELETIONS_AT_ONCE, until=sure.until)
        for error in refused:
            if not isinstance(error, errors.Conflict):
                raise error
        if changed or refused:
            raise Outdated(f"{changed + len(refused)} workers may not be deleted any more")

    async def _delete_worker(self, view: JobView, removal: Removal) -> None:
        try:
            await self._delete(view, resources.PODS, removal.worker.ref, grace=removal.grace)
        except (errors.Unreachable, errors.TooSlow):
            # The pod may be gone: two Events are better than none.
            self.events.emit(view, removal.note)
            raise
        self.metrics.deleted_workers.labels(removal.outcome).inc()
        self.events.emit(view, removal.note)

    async def _delete(
        self,
        view: JobView,
        resource: resources.Resource,
        ref: Identity,
        *,
        at_version: bool = True,
        grace: int | None = None,
    ) -> None:
        """Delete an object.

        An object deleted without its version counts as gone, even while something holds the object.
        """
        try:
            answer = await self.leader_writer.delete_object(
                resource, namespace=view.namespace, ref=ref, at_version=at_version, grace=grace
            )
        except errors.NotFound:
            answer = b"{}"  # as for an object that went at once
        except errors.Unreachable:
            # The pod may be gone.
            self._paced(view, resource, ref)
            raise
        self._paced(view, resource, ref)
        if at_version and _is_there(resource, answer):
            with suppress(msgspec.DecodeError):  # the watch tells of a pod that cannot be read
                self.seen.see(resource, answer)
        else:
            self.seen.see_gone(resource, view.namespace, ref)

    def _paced(self, view: JobView, resource: resources.Resource, ref: Identity) -> None:
        if resource == resources.PODS:
            self.deletions.add(view, ref.name)


def _holds(found: Any, kept: Object | Operations) -> bool:
    """Tell whether an object has the values that a merge patch or a JSON patch has set."""
    if isinstance(kept, Mapping):
        return _agrees(found, kept)
    return all(
        _at(found, change["path"]) == change["value"] for change in kept if change["op"] != "test"
    )


def _agrees(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(found == wanted)
    parts = found or {}
    return all(_agrees(parts.get(key), value) for key, value in wanted.items())


def _at(found: Any, path: str) -> Any:
    for key in path.split("/")[1:]:
        parts = (
            {str(index): part for index, part in enumerate(found)}
            if isinstance(found, list)
            else found or {}
        )
        found = parts.get(key)
    return found


def _is_there(resource: resources.Resource, answer: bytes) -> bool:
    """Tell by the answer to a deletion whether the object is still there.

    The answer is the object while the object has time to end, or a finalizer holds the object; the
    former pod or a Status if the object went at once; and a pod without a version if another
    deletion finished meanwhile.
    """
    found = msgspec.json.decode(answer, type=_Answer)
    return found.kind == resource.kind and bool(found.metadata.resource_version)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

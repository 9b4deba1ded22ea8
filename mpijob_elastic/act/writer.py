"""Every write on behalf of a job, one function each.

Preconditions: a ConfigMap, a Role and a PodGroup are written at the resourceVersion that was decided on. A pod is
deleted at its uid and resourceVersion as just read. A size is set at the version and from the size that were decided
on. An annotation and the selector are patched under the uid of their object. The answer of the API server goes to
`Seen` at once, so the next decision sees it. A refusal is raised, and the queue has the job looked at again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act import end_execs
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Altered, Gate, for_each
from mpijob_elastic.act.launcher_execs import End
from mpijob_elastic.act.own import Own
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.decide.actions import (
    Action,
    DeleteJob,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    EndLauncher,
    Fill,
    Gated,
    Note,
    RefreshLauncher,
    ReleaseWorker,
    Removal,
    RollBack,
    TellUser,
    Ungate,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model import memory_text, mpijob
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Refusal
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Begins to end execs of a launcher, beside the other writes.
BeginToEnd = Callable[[JobView, EndExecs, End], None]

# Deletions of one job under way: a large scale-in waits for fewer answers, and still opens few connections.
DELETIONS_AT_ONCE = 4
# Seconds for which deletions follow a decision on live objects; after them it is made again. Or for as long as that
# reading took, so that a slow API server spends no more on reading than on deleting.
SURE_FOR = 0.1


class Outdated(Exception):
    """The live objects no longer allow what was decided from the caches."""


class Recheck(Protocol):
    """Decides again, from objects read live."""

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        """Return the deletions that still hold, at their live versions. Raises Outdated where the job is not ours."""

    async def suspended(self, view: JobView) -> bool:
        """Tell whether the job is still to be suspended."""

    async def execs(self, view: JobView, action: EndExecs) -> Sequence[Exec]:
        """Return the frozen execs that may still be ended."""


class Seen(Protocol):
    """Takes in the answer of the API server to a write."""

    def see(self, resource: resources.Resource, raw: bytes) -> None:
        """Take in the JSON of an object after our write."""

    def see_gone(self, resource: resources.Resource, namespace: str, ref: Identity) -> None:
        """Take in that an object does not exist any more."""


class Writer:
    """Carries out actions."""

    def __init__(
        self,
        gate: Gate,
        seen: Seen,
        *,
        recheck: Recheck,
        begin_to_end: BeginToEnd,
        events: Events,
        metrics: Metrics,
        own: Sequence[Own] = (),
    ) -> None:
        self._gate = gate
        self._seen = seen
        self._recheck = recheck
        self._begin_to_end = begin_to_end
        self._events = events
        self._metrics = metrics
        self._own = own
        # By namespace and name of the job. In memory alone: after a restart the touch is tried again at once.
        self._refused: dict[tuple[str, str], Refusal] = {}

    def informed(self, view: JobView) -> JobView:
        """Return the view, with the refusal of the launcher's last touch if that was for the same change."""
        found, launcher, config = self._refused.get((view.namespace, view.name)), view.launcher, view.config
        if not (found and launcher and config) or (found.tries.uid, found.change) != (launcher.ref.uid, config.digest):
            return view
        return replace(view, launcher=replace(launcher, refused=found))

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self._refused.pop((namespace, name), None)
        for one in self._own:
            one.forget(namespace, name)

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out an action.

        Raises errors.KubeError, NotLeader or Outdated; it is then unknown whether anything has changed.
        """
        for one in self._own:
            if isinstance(action, one.kinds):
                return await one.perform(view, action)
        return await self._perform(view, action)

    async def _perform(self, view: JobView, action: Action) -> None:
        match action:
            case WriteRole():
                await self._write_role(view, action)
            case WriteConfig():
                await self._write_config(view, action)
            case RefreshLauncher():
                await self._refresh(view, action)
            case DeleteWorkers() | DeleteLauncher() | DeleteJob():
                await self._delete(view, action)
            case Ungate():
                await for_each(action.pods, partial(self._ungate, view, action))
                self._tell(view, action.note)
            case TellUser() | ReleaseWorker():
                await self._say(view, action)
            case WriteSelector():
                await self._write_selector(view, action)
            case RollBack() | Fill():
                self._done(view, resources.MPI_JOBS, await self._resize(view, action), action.note)
            case EndExecs() | EndLauncher():
                await self._end(view, action)

    async def _write_role(self, view: JobView, action: WriteRole) -> None:
        rule = f"/rules/{action.exec_rule}"
        patch = [
            _at_version(action.ref),
            {"op": "test", "path": f"{rule}/resources", "value": ["pods/exec"]},
            {"op": "add", "path": f"{rule}/resourceNames", "value": list(action.exec_names)},
        ]
        answer = await self._gate.patch_object(
            resources.ROLES, namespace=view.namespace, name=action.ref.name, body=patch
        )
        self._done(view, resources.ROLES, answer, action.note)

    async def _write_config(self, view: JobView, action: WriteConfig) -> None:
        data = {names.KEY_DISCOVER_HOSTS: action.script, names.KEY_HOSTFILE: action.hostfile}
        if action.kubexec is not None:
            data[names.KEY_KUBEXEC] = action.kubexec
        metadata = {
            "uid": action.ref.uid,
            "resourceVersion": action.ref.resource_version,
            "annotations": {names.MEMORY: memory_text.render(action.memory)},
        }
        patch = {"metadata": metadata, "data": data}
        answer = await self._gate.patch_object(
            resources.CONFIG_MAPS, namespace=view.namespace, name=action.ref.name, body=patch
        )
        self._metrics.lost_workers.inc(len(action.lost))
        self._done(view, resources.CONFIG_MAPS, answer, *action.notes)

    async def _write_selector(self, view: JobView, action: WriteSelector) -> None:
        patch = [
            # The API server takes only the status from a patch of it, so a uid in a merge patch would not count.
            {"op": "test", "path": "/metadata/uid", "value": action.ref.uid},
            {"op": "add", "path": "/status/replicaStatuses/Worker/selector", "value": action.selector},
        ]
        answer = await self._gate.patch_object(
            resources.MPI_JOBS, namespace=view.namespace, name=action.ref.name, subresource="status", body=patch
        )
        self._done(view, resources.MPI_JOBS, answer)

    async def _resize(self, view: JobView, action: RollBack | Fill) -> bytes:
        path = "/spec/mpiReplicaSpecs/Worker/replicas"
        patch = [
            _at_version(action.ref),
            {"op": "test", "path": "/metadata/uid", "value": action.ref.uid},
            {"op": "test", "path": path, "value": action.before},
            {"op": "replace", "path": path, "value": action.after},
        ]
        answer = await self._gate.patch_object(
            resources.MPI_JOBS, namespace=view.namespace, name=action.ref.name, body=patch
        )
        if mpijob.decode(answer).replicas != action.after:
            self._seen.see(resources.MPI_JOBS, answer)
            raise Altered(f"{view.namespace}/{view.name}: an admission plugin changes the size we write")
        return answer

    async def _ungate(self, view: JobView, action: Ungate, gated: Gated) -> None:
        kept = [{"name": gate} for gate in gated.kept]
        placed = [operation for one in self._own for operation in await one.place(view, gated.ref, action)]
        first = placed or [_at_version(gated.ref)]
        patch = [*first, {"op": "replace", "path": "/spec/schedulingGates", "value": kept}]
        try:
            answer = await self._gate.patch_object(
                resources.PODS, namespace=view.namespace, name=gated.ref.name, body=patch
            )
        except errors.NotFound:
            self._seen.see_gone(resources.PODS, view.namespace, gated.ref)
        else:
            self._done(view, resources.PODS, answer)

    async def _end(self, view: JobView, action: EndExecs | EndLauncher) -> None:
        if isinstance(action, EndExecs):
            return self._begin_to_end(view, action, partial(self._end_execs, view, action))
        ref = action.launcher.ref
        patch = [_at_version(ref), {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": action.DEADLINE}]
        answer = await self._gate.patch_object(resources.PODS, namespace=view.namespace, name=ref.name, body=patch)
        return self._done(view, resources.PODS, answer, action.note)

    async def _end_execs(self, view: JobView, action: EndExecs) -> Mapping[Exec, bool]:
        outcomes = await end_execs.end(self._gate, view, action, recheck=self._recheck.execs, metrics=self._metrics)
        if ended := [found for found, outcome in outcomes.items() if outcome == end_execs.ENDED]:
            self._events.emit(view, frozen_execs.ended(view, ended))
        return {found: outcome != end_execs.FAILED for found, outcome in outcomes.items()}

    async def _refresh(self, view: JobView, action: RefreshLauncher) -> None:
        """Touch the launcher. A refusal is remembered and not raised, so that it holds up nothing else."""
        self._refused.pop((view.namespace, view.name), None)
        try:
            await self._annotate(view, resources.PODS, action.launcher.ref, names.REFRESHED, action.digest)
        except errors.ApiError as error:
            if isinstance(error, errors.Conflict | errors.NotFound | errors.Throttled):
                raise
            log.warning("%s/%s is not touched: %s", view.namespace, action.launcher.ref.name, error)
            change = action.digest.partition("@")[0]
            refused = Refusal(change=change, tries=action.tries, reason=error.message)
            self._refused[view.namespace, view.name] = refused

    async def _say(self, view: JobView, action: TellUser | ReleaseWorker) -> None:
        if isinstance(action, ReleaseWorker):
            await self._annotate(view, resources.PODS, action.worker.ref, action.annotation, action.mark)
            self._tell(view, action.note)
        else:
            await self._annotate(view, resources.MPI_JOBS, action.ref, names.STATUS, action.text)
            self._tell(view, *action.notes)

    async def _annotate(self, view: JobView, resource: resources.Resource, ref: Identity, key: str, value: str) -> None:
        # No resourceVersion: the annotation is ours alone, and a status update beside it is no conflict.
        patch = {"metadata": {"uid": ref.uid, "annotations": {key: value or None}}}
        answer = await self._gate.patch_object(resource, namespace=view.namespace, name=ref.name, body=patch)
        self._done(view, resource, answer)

    def _done(self, view: JobView, resource: resources.Resource, answer: bytes, *notes: Note) -> None:
        self._seen.see(resource, answer)
        self._tell(view, *notes)

    def _tell(self, view: JobView, *notes: Note) -> None:
        for note in notes:
            self._events.emit(view, note)

    async def _delete(self, view: JobView, action: DeleteWorkers | DeleteLauncher | DeleteJob) -> None:
        if isinstance(action, DeleteWorkers):
            return await self._delete_workers(view, action)
        if isinstance(action, DeleteLauncher):
            if action.suspends and not await self._recheck.suspended(view):
                raise Outdated(f"{view.namespace}/{view.name} is not suspended any more")
            await self._delete_version(resources.PODS, view.namespace, action.launcher.ref, grace=0)
        else:
            await self._delete_version(resources.MPI_JOBS, view.namespace, action.ref)
        return self._tell(view, action.note)

    async def _delete_workers(self, view: JobView, action: DeleteWorkers) -> None:
        left, changed = deque(action.removals), 0
        refused: list[errors.KubeError] = []
        clock = asyncio.get_running_loop().time
        while left:
            began = clock()
            sure = deque(await self._recheck.removals(view, DeleteWorkers(removals=tuple(left))))
            changed += len(left) - len(sure)
            left, read = sure, clock()
            refused += await self._delete_until(view, left, at=read + max(SURE_FOR, read - began))
        for error in refused:
            if not isinstance(error, errors.Conflict):
                raise error
        if changed or refused:
            raise Outdated(f"{changed + len(refused)} workers may not be deleted any more")

    async def _delete_until(self, view: JobView, left: deque[Removal], *, at: float) -> list[errors.KubeError]:
        """Delete workers from the front of `left` until that time of the loop; return what was refused."""
        refused: list[errors.KubeError] = []

        async def delete_in_turn() -> None:
            while left and asyncio.get_running_loop().time() < at:
                try:
                    await self._delete_worker(view, left.popleft())
                except errors.KubeError as error:
                    if errors.is_away(error):
                        raise
                    refused.append(error)

        # Await each even if another fails, so that nothing is under way at the next look at the job.
        lanes = (delete_in_turn() for _ in range(DELETIONS_AT_ONCE))
        outcomes = await asyncio.gather(*lanes, return_exceptions=True)
        for failure in filter(None, outcomes):
            raise failure
        return refused

    async def _delete_worker(self, view: JobView, removal: Removal) -> None:
        try:
            await self._delete_version(resources.PODS, view.namespace, removal.worker.ref, grace=removal.grace)
        except errors.Unreachable:
            # The pod may be gone: two Events are better than none.
            self._events.emit(view, removal.note)
            raise
        self._metrics.deleted_workers.labels(removal.outcome).inc()
        self._events.emit(view, removal.note)

    async def _delete_version(
        self, resource: resources.Resource, namespace: str, ref: Identity, *, grace: int | None = None
    ) -> None:
        try:
            answer = await self._gate.delete_object(
                resource,
                namespace=namespace,
                name=ref.name,
                uid=ref.uid,
                resource_version=ref.resource_version,
                grace=grace,
            )
        except errors.NotFound:
            self._seen.see_gone(resource, namespace, ref)
            return
        # The answer is the object while it is given time to end, or a finalizer holds it; a former pod or a Status if
        # it went at once; and a pod without a version if another deletion finished meanwhile.
        found = msgspec.json.decode(answer, type=_Answer)
        if found.kind == resource.kind and found.metadata.resource_version:
            self._seen.see(resource, answer)
        else:
            self._seen.see_gone(resource, namespace, ref)


def _at_version(ref: Identity) -> dict[str, object]:
    """Return the operation that makes the API server refuse a JSON patch if the object has another version."""
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": ref.resource_version}


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

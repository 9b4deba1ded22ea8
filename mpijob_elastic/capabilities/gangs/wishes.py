"""The PodGroup of a job and its writes: the pods that a gang scheduler waits for, and the queue.

[operator] With --gang-scheduling the operator creates the PodGroup with replicas + 1 and never
updates it. With fewer pods than that, neither the gang is scheduled nor a recreated worker. A job
that asks for a gang itself gets the same object, of the same name, from us; the operator then
leaves it as it is.

The PodGroup is created with the workers that the launcher waits for, so that no job holds a part of
them. Once the driver runs, it is lowered to the least size and the launcher. It is only ever
lowered: pods above it are scheduled, and may be reclaimed, individually
(https://github.com/volcano-sh/volcano/blob/master/docs/design/elastic-scheduler.md).

minCount of a PodGroup of Kubernetes 1.36 cannot change. The user is told how to delete the
PodGroup, which is then created again with fewer pods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs import facts as gang
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.decide.actions import (
    Action,
    Create,
    Note,
    Noted,
    Object,
    Patch,
    SetSize,
    normal,
    warning,
)
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Relaunch
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker

# The author of these wishes.
AUTHOR = "gangs"
# Seconds after the launcher's start in which a PodGroup may still be as it was before.
CHANGED_WITHIN = 5.0
# Seconds that a forgotten pod is left alone: the scheduler may find a node after all.
LEFT_FOR = 5.0


class LowerPodGroup(SetSize):
    """Let a gang scheduler wait for fewer pods of the job: `after` instead of `before`."""

    def change(self) -> Object:
        """Return the new count."""
        if _is_of_kubernetes(self.resource):
            return {"spec": _of_kubernetes(self.after)}
        return {"spec": {"minMember": self.after}}


@dataclass(frozen=True, kw_only=True)
class MakePodGroup(Noted, Create):
    """Create the PodGroup of a job, controlled by it."""

    job: Identity
    min_member: int
    gang: Gang

    def content(self) -> Object:
        """Return the PodGroup as its scheduler knows it."""
        metadata: dict[str, object] = {
            "name": self.job.name,
            "ownerReferences": [controller(self.job)],
        }
        asked = self.gang
        spec = _of_kubernetes(self.min_member)
        if self.resource == gang.KUBERNETES_POD_GROUPS:
            spec["priorityClassName"] = asked.priority_class
        if not _is_of_kubernetes(self.resource):
            metadata["annotations"] = dict(asked.annotations)
            spec = {
                "minMember": self.min_member,
                "queue": asked.queue,
                "priorityClassName": asked.priority_class,
            }
        return {"metadata": metadata, "spec": {key: value for key, value in spec.items() if value}}


def _is_of_kubernetes(resource: Resource) -> bool:
    return resource.group == gang.KUBERNETES_POD_GROUPS.group


def _of_kubernetes(count: int) -> dict[str, object]:
    """Return the spec of a PodGroup of Kubernetes that waits for so many pods."""
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


@dataclass(frozen=True, kw_only=True)
class TunePodGroup(Noted, Patch):
    """Give a PodGroup the queue ("" for the one that it has) and annotations of its job."""

    queue: str
    annotations: Mapping[str, str]

    def change(self) -> Object:
        """Return the queue and the annotations."""
        spec = {"queue": self.queue} if self.queue else {}
        return {"metadata": {"annotations": dict(self.annotations)}, "spec": spec}


def write(
    state: JobState, group: PodGroup | None, *, serves: bool | None, resource: Resource
) -> Action | None:
    """Return the write that is due, or None.

    serves: the API serves PodGroups; None while that is not known. resource: those PodGroups.
    """
    view, asked = state.view, state.view.facts.of(Gang)
    if group is None:
        return _make(view, asked, resource) if asked and serves else None
    return _lower(state, group, resource) or (_tune(view, group, asked) if asked else None)


def of(view: JobView, group: PodGroup, *, now: float) -> Iterator[Leave | Relaunch]:
    """Yield wishes for the pods that Koordinator has forgotten, so that their successors are tried.

    Koordinator may never try a worker again that was created before the gang had started. If it has
    started the gang with workers alone, it has forgotten the launcher.
    """
    asked, launcher = view.facts.of(Gang), view.launcher
    if asked is None or launcher is None:
        return
    started_at = launcher.facts.started_at if view.driver_running else None
    if started_at is not None and gang.ONE_BY_ONE.items() <= group.annotations.items():
        forgotten = (worker for worker in view.workers if _is_forgotten(worker, started_at))
        for worker in forgotten:
            yield Leave(
                by=AUTHOR,
                pod=worker.name,
                kind=LeaveKind.REPLACE,
                why="because its scheduler tries no pod again that waited when the gang started",
                after=_left_until(worker, now=now),
            )
    may_start = launcher.facts.grouped and not (launcher.facts.node or launcher.facts.gates)
    placed = sum(bool(worker.facts.node) for worker in view.workers)
    if asked.scheduler == gang.KOORDINATOR and may_start and 0 < group.min_member <= placed:
        why = "was left out when its gang started, and its scheduler does not try it again"
        yield Relaunch(by=AUTHOR, why=why, after=_left_until(launcher, now=now))


def _is_forgotten(worker: Worker, started_at: float) -> bool:
    """Tell whether a worker of the gang waited for a node when the gang started."""
    if not worker.facts.grouped or worker.facts.gates or not worker.unscheduled:
        return False
    return worker.facts.created_at <= started_at + CHANGED_WITHIN


def untried(view: JobView, pod: Launcher | Worker) -> str:
    """Return why the scheduler says nothing about a pod of the gang; "" if it need not.

    [v1.37.2] A pod whose PodGroup is missing, or has fewer pods than it counts, is not tried, and
    gets no condition (plugins/gangscheduling, PreEnqueue).
    """
    facts = pod.facts
    is_tried = facts.node or facts.obstacle or facts.deleting
    if not facts.grouped or facts.gates or is_tried:
        return ""
    there = sum(each.facts.grouped and not each.facts.deleting for each in view.pods)
    return (
        "waits for its gang: the scheduler has not tried it yet. It tries the gang once PodGroup "
        f"{view.name} exists and as many of the job's pods as the PodGroup counts; {there} exist, "
        f"and the job asks for {_members(view)}"
    )


def notes(
    view: JobView, group: PodGroup | None, *, serves: bool | None, resource: Resource
) -> Iterator[Note]:
    """Yield a notice for each reason why the pods do not start as a gang."""
    asked = view.facts.of(Gang)
    if asked and serves is False:
        missing = f"the cluster serves no PodGroups of {asked.scheduler}"
        begin = f"{view.name} asks for a gang, but {missing}: "
        if asked.scheduler == gang.KUBERNETES:  # the webhook then sets no mark
            follows = f"its pods start one by one. {gang.KUBERNETES_FLAGS}"
            yield warning("GangUnavailable", begin + follows)
            return
        yield warning("GangUnavailable", begin + "until it does, no pod starts")
    most = 1 + view.replicas
    if group and group.min_member > most and _is_fixed(resource):
        theirs = f"podgroup.{gang.KUBERNETES_POD_GROUPS.group} {view.name} -n {view.namespace}"
        unprotected = '{"metadata":{"finalizers":null}}'
        yield warning(
            "GangUnchanged",
            f"PodGroup {view.name} waits for {group.min_member} pods, which cannot change, and "
            f"the job has {most}, so no further pod starts. Delete the PodGroup, and it is made "
            f"again for fewer pods (running pods go on): `kubectl delete {theirs} --wait=false; "
            f"kubectl patch {theirs} --type=merge -p '{unprotected}'`",
        )
    members = view.workers if asked and not asked.with_launcher else view.pods
    alone = [pod.ref.name for pod in members if not (pod.facts.grouped or pod.facts.deleting)]
    if alone:
        yield warning(
            "GangMissed",
            f"{listed(alone)} made without the marks of the gang, so scheduled alone: the "
            f"webhook {names.WEBHOOK} was away, or did not know the job or the PodGroups. A worker "
            "that is deleted comes back with the marks",
        )


def _make(view: JobView, asked: Gang, resource: Resource) -> MakePodGroup:
    count = _members(view)
    queue = f" in queue {asked.queue}" if asked.queue else ""
    message = f"PodGroup {view.name}: the pods start together, {count} at least{queue}"
    note = normal("PodGroupCreated", message)
    return MakePodGroup(resource=resource, job=view.ref, min_member=count, gang=asked, note=note)


def _lower(state: JobState, group: PodGroup, resource: Resource) -> LowerPodGroup | None:
    view, count = state.view, _members(state.view)
    if not view.elastic or state.wishes.suspend or group.min_member <= count:
        return None
    if _is_fixed(resource):
        return None
    field = "minCount" if _is_of_kubernetes(resource) else "minMember"
    message = (
        f"PodGroup {group.metadata.name}: {field} {group.min_member} → {count}, so "
        "that the job needs fewer workers"
    )
    note = normal("PodGroupLowered", message)
    return LowerPodGroup(
        resource=resource, ref=group.metadata, before=group.min_member, after=count, note=note
    )


def _is_fixed(resource: Resource) -> bool:
    return resource == gang.KUBERNETES_POD_GROUPS_OF_1_36


def _tune(view: JobView, group: PodGroup, asked: Gang) -> TunePodGroup | None:
    """Return the write of Volcano's queue and task topology, or of Koordinator's policy, or None.

    Koordinator starts the job's pods together, and then each further pod alone.
    """
    queue = ""
    if asked.scheduler == gang.VOLCANO:
        queue, annotations = asked.queue or group.queue, asked.annotations
        is_due = queue != group.queue or not annotations.items() <= group.annotations.items()
        how = f"queue {queue}, and the task topology of the job's annotations"
    elif asked.scheduler == gang.KOORDINATOR:
        steps = (gang.TOGETHER, gang.ONE_BY_ONE)
        before, annotations = steps if view.driver_running else reversed(steps)
        is_due = before.items() <= group.annotations.items()  # else somebody wants it otherwise
        how = "further pods start alone" if view.driver_running else "the pods start together again"
    else:
        return None
    if not is_due:
        return None
    note = normal("PodGroupChanged", f"PodGroup {group.metadata.name}: {how}")
    [groups] = gang.pod_groups(asked)
    return TunePodGroup(
        resource=groups, ref=group.metadata, queue=queue, annotations=annotations, note=note
    )


def _members(view: JobView) -> int:
    """Count the pods for which the gang waits: workers, and the launcher if it is in the gang.

    At least 1, the least that a PodGroup may count.
    """
    asked = view.facts.of(Gang)
    workers = _least_workers(view)
    return max(1, workers) if asked and not asked.with_launcher else 1 + workers


def _least_workers(view: JobView) -> int:
    """Return the count of workers for which the gang waits.

    Before the launcher starts, these are the workers that it waits for; then they are the least
    size.
    """
    least = policy.least_workers(view.policy, view.replicas, elastic=view.elastic)
    if not view.elastic:
        return least
    awaited = view.facts.startup_workers
    if view.driver_running:
        awaited = 0
    elif awaited is None:
        awaited = view.replicas
    return min(max(least, awaited), view.replicas)


def _left_until(pod: Launcher | Worker, *, now: float) -> float:
    return honest(pod.facts.created_at, now=now) + LEFT_FOR

"""Every write and every look on behalf of a job, as a value that carries its reason in words.

A `Patch`, `Create` or `Delete` says all that is sent; `act.writer` sends each of these three in one function. For the
other actions `act` reads live objects first, or writes to many pods; frozen execs take an exec each. Beside these it
writes only Events for a job. Install, upgrade, the webhook's certificates and the lease write on their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import (
    AUTOSCALERS,
    KUBERNETES_POD_GROUPS,
    MPI_JOBS,
    PODS,
    QUEUE_UNITS,
    ROLES,
    WORKLOADS,
    Resource,
)
from mpijob_elastic.model import autoscale
from mpijob_elastic.model.autoscale import Spec
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.kube_queue import QueueUnit
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.owners import controller
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker
from mpijob_elastic.model.queue import Workload

Object = Mapping[str, Any]
# Operations of a JSON patch.
Operations = Sequence[Object]


@dataclass(frozen=True, kw_only=True)
class Note:
    """An Event for the user: reason (CamelCase), message, and True for a warning."""

    reason: str
    message: str
    warning: bool = False

    @property
    def line(self) -> str:
        """The note as a line of the job's annotation."""
        return f"{self.reason}: {self.message}"


def normal(reason: str, message: str) -> Note:
    """Return a note on what happens as it should."""
    return Note(reason=reason, message=message)


def warning(reason: str, message: str) -> Note:
    """Return a warning on a single line: the annotation holds a note a line, and a user's value may have several."""
    return Note(reason=reason, message=" ".join(message.split()), warning=True)


@dataclass(frozen=True, kw_only=True)
class Action:
    """A write on behalf of a job. words: what it does, if its notes do not say that, formatted with itself."""

    words: ClassVar[str] = ""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to tell the user once it is done."""
        return ()

    def says(self) -> str:
        """What it does, in words for a plan: a line, or several."""
        return self.words.format(self=self) or "\n".join(note.message for note in self.notes)

    def about(self) -> tuple[object, ...]:
        """What is written, to which objects: as long as that is the same, trying again is the same try."""
        return ()


@dataclass(frozen=True, kw_only=True)
class _Noted(Action):
    note: Note

    @property
    def notes(self) -> tuple[Note, ...]:
        return (self.note,)


@dataclass(frozen=True, kw_only=True)
class Create(Action, ABC):
    """Create an object."""

    resource: Resource

    @abstractmethod
    def content(self) -> Object:
        """The new object without its kind."""

    def kept(self) -> Object:
        """What the answer must hold."""
        return {}

    def body(self) -> Object:
        """The new object."""
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **self.content()}


@dataclass(frozen=True, kw_only=True)
class _OfObject(Action):
    """A write to an object that is there.

    at_version: it must be as it was when that was decided; else it need only be the same object, by its uid.
    """

    at_version: ClassVar[bool] = True

    resource: Resource
    ref: Identity

    def about(self) -> tuple[object, ...]:
        return (self.ref.name,)


class Delete(_OfObject):
    """Delete an object."""


@dataclass(frozen=True, kw_only=True)
class Patch(_OfObject, ABC):
    """Change an object. An answer that lacks the change is an error: an admission plugin changes what we write."""

    subresource: ClassVar[str | None] = None

    @abstractmethod
    def change(self) -> Object | Operations:
        """The change without its precondition: a merge patch, or a JSON patch."""

    def kept(self) -> Object | Operations:
        """What the answer must hold."""
        return self.change()

    def body(self) -> Object | Operations:
        """The patch with its precondition, without which the API server refuses it."""
        change, version = self.change(), self.ref.resource_version
        if isinstance(change, Mapping):
            same = {"uid": self.ref.uid, **({"resourceVersion": version} if self.at_version else {})}
            return {**change, "metadata": {**change.get("metadata", {}), **same}}
        if self.at_version:
            return ({"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *change)
        return (_test("/metadata/uid", self.ref.uid), *change)


def _test(path: str, value: object) -> Object:
    return {"op": "test", "path": path, "value": value}


def _put(path: str, value: object) -> Object:
    return {"op": "add", "path": path, "value": value}


@dataclass(frozen=True, kw_only=True)
class _Annotate(Patch):
    """Set an annotation of ours alone, so that a write of others beside it is no conflict; without a text it goes."""

    at_version = False
    key: ClassVar[str]

    text: str

    def change(self) -> Object:
        return {"metadata": {"annotations": {self.key: self.text or None}}}


@dataclass(frozen=True, kw_only=True)
class WriteRole(_Noted, Patch):
    """Let the launcher exec into exactly `exec_names`."""

    resource: Resource = ROLES
    exec_rule: int
    exec_names: tuple[str, ...]

    def change(self) -> Operations:
        rule = f"/rules/{self.exec_rule}"
        return (_test(f"{rule}/resources", ["pods/exec"]), _put(f"{rule}/resourceNames", list(self.exec_names)))

    def about(self) -> tuple[object, ...]:
        return self.exec_names


@dataclass(frozen=True, kw_only=True)
class WriteConfig(Action):
    """Publish a host list: script, hostfile and memory in a single write, and kubexec.sh if it must change.

    added, removed: the pods that come and go. lost: those of the removed that nobody asked to leave. takes_back: the
    list was another operator's.
    """

    ref: Identity
    script: str
    hostfile: str
    memory: Memory
    kubexec: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    takes_back: bool = False

    def says(self) -> str:
        changes = {
            f"publish {listed(self.added)} in {names.KEY_DISCOVER_HOSTS}": self.added,
            f"remove {listed(self.removed)} from {names.KEY_DISCOVER_HOSTS}": self.removed,
        }
        other = f"update {names.KEY_HOSTFILE}, {names.KEY_DISCOVER_HOSTS} or the memory in ConfigMap {self.ref.name}"
        return "\n".join(words for words, pods in changes.items() if pods) or other

    def about(self) -> tuple[object, ...]:
        return self.script, self.hostfile


@dataclass(frozen=True, kw_only=True)
class RefreshLauncher(_Annotate):
    """Touch the launcher pod, so that its kubelet shows it the new ConfigMap at once.

    text: the digest of the change. again: the repetition, 0 for the first touch for this change. tries: counts this
    touch, should it be refused.
    """

    key = names.REFRESHED

    resource: Resource = PODS
    tries: Tries
    again: int = 0

    def says(self) -> str:
        again = " again, because ranks may still run in leaving workers" if self.again else ""
        return f"touch {self.ref.name}{again}, so that its kubelet refreshes {names.KEY_DISCOVER_HOSTS} now"


@dataclass(frozen=True, kw_only=True)
class ProbeWorkers:
    """Look by exec whether anything but the main process runs in workers: leaving, or published.

    Probes of leaving workers come first, because somebody waits for their GPUs. drained: that is known, and their pods
    are being deleted, so the main process is told: it need not wait for a rank that may start.
    """

    workers: tuple[Worker, ...]
    published: bool = False
    drained: bool = False

    def says(self) -> str:
        """What it does, in words for a plan. Only the controller knows when it last looked into published workers."""
        pods = listed(pod.name for pod in self.workers)
        if self.drained:
            return f"tell the main process of {pods} by exec that its worker has drained"
        question = ", from time to time, that ranks" if self.published else " whether ranks still"
        return f"check by exec{question} run in {pods}"


@dataclass(frozen=True, kw_only=True)
class LookIntoLauncher:
    """Look by exec which `kubectl exec`s the launcher holds; `about`: why, so that no reason is looked into twice."""

    launcher: Launcher
    about: frozenset[str]

    def says(self) -> str:
        """What it does, in words for a plan. Only the controller knows when it last looked."""
        return f"check by exec, unless just done, that {self.launcher.ref.name} holds no exec into a pod that is gone"


@dataclass(frozen=True, kw_only=True)
class EndExecs(Action):
    """End frozen `kubectl exec`s in the launcher, after the same decision was made again from live objects."""

    launcher: Launcher
    execs: tuple[Exec, ...]

    def says(self) -> str:
        pods = listed(sorted({found.pod for found in self.execs}))
        return f"end frozen `kubectl exec` into {pods} in {self.launcher.ref.name}"


@dataclass(frozen=True, kw_only=True)
class Removal:
    """One worker to delete, and why that is safe now.

    outcome: a metric label (drained, timeout, unused, ...). grace: seconds to end, None for what the pod itself says.
    """

    worker: Worker
    outcome: str
    note: Note
    grace: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeleteWorkers(Action):
    """Delete pods in this order, after the same decision was made again from live objects."""

    removals: tuple[Removal, ...]

    def says(self) -> str:
        return "\n".join(removal.note.message for removal in self.removals)

    def about(self) -> tuple[object, ...]:
        return tuple(removal.worker.name for removal in self.removals)


@dataclass(frozen=True, kw_only=True)
class ReleaseWorker(_Noted, _Annotate):
    """Say on a worker that has drained that it may be evicted."""

    key = names.EVICTION

    resource: Resource = PODS


@dataclass(frozen=True, kw_only=True)
class DeleteLauncher(_Noted):
    """Delete a launcher whose main container has never started, or of a suspended job; the operator recreates it.

    It goes without a grace period. [operator] Otherwise it would see the launcher end, and call the job Failed or
    Succeeded for ever: a kubelet reports the phase of every other pod before that is gone
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced). The kubelet still sends
    SIGTERM first. suspends: the job is suspended, which is read live before.
    """

    launcher: Launcher
    suspends: bool = False


@dataclass(frozen=True, kw_only=True)
class EndLauncher(_Noted, Patch):
    """Have the kubelet end a launcher as Failed, by a deadline that has passed: the operator then fails the job."""

    DEADLINE: ClassVar = 1

    resource: Resource = PODS

    def change(self) -> Operations:
        return (_put("/spec/activeDeadlineSeconds", self.DEADLINE),)


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A pod that is held back, and the scheduling gates that it keeps, in order."""

    ref: Identity
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _OfGated(_Noted):
    pods: tuple[Gated, ...]

    def about(self) -> tuple[object, ...]:
        return tuple(gated.ref.name for gated in self.pods)


class Ungate(_OfGated):
    """Take scheduling gates of ours off pods, in this order."""

    def says(self) -> str:
        return f"take the scheduling gate off {listed(gated.ref.name for gated in self.pods)}"


@dataclass(frozen=True, kw_only=True)
class DeleteJob(_Noted, Delete):
    """Delete a finished job."""

    resource: Resource = MPI_JOBS


@dataclass(frozen=True, kw_only=True)
class TellUser(_Annotate):
    """Tell the user what the job waits for: the new text of the annotation, and an Event for each new line."""

    key = names.STATUS

    resource: Resource = MPI_JOBS
    notes: tuple[Note, ...] = ()

    def says(self) -> str:
        if names.is_handed_over(self.text):
            return "note on the job that another operator manages it"
        return "update the notices on the job" if self.text else "remove the notices from the job"

    def about(self) -> tuple[object, ...]:
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class WriteSelector(Patch):
    """Write the selector of the workers into the job's status, where the subresource scale and an HPA read it.

    By JSON patch: of a patch of the status the API server takes only the status, so a uid in a merge patch would not
    count.
    """

    at_version = False
    subresource = "status"
    words = "restore the selector of the workers in the job's status"

    resource: Resource = MPI_JOBS
    selector: str

    def change(self) -> Operations:
        return (_put("/status/replicaStatuses/Worker/selector", self.selector),)


@dataclass(frozen=True, kw_only=True)
class _SetSize(_Noted, Patch):
    before: int
    after: int

    def about(self) -> tuple[object, ...]:
        return (self.after,)


class LowerPodGroup(_SetSize):
    """Let a gang scheduler wait for fewer pods of the job: `after` instead of `before`."""

    def change(self) -> Object:
        return {"spec": {"minMember": self.after}}


@dataclass(frozen=True, kw_only=True)
class MakePodGroup(_Noted, Create):
    """Create the PodGroup of a job, controlled by it."""

    job: Identity
    min_member: int
    gang: Gang

    def content(self) -> Object:
        metadata: dict[str, object] = {"name": self.job.name, "ownerReferences": [controller(self.job)]}
        spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": self.min_member}}}
        if self.resource != KUBERNETES_POD_GROUPS:
            metadata["annotations"] = dict(self.gang.annotations)
            asked = self.gang
            spec = {"minMember": self.min_member, "queue": asked.queue, "priorityClassName": asked.priority_class}
        return {"metadata": metadata, "spec": {key: value for key, value in spec.items() if value}}


@dataclass(frozen=True, kw_only=True)
class TunePodGroup(_Noted, Patch):
    """Give a PodGroup the queue ("" for the one that it has) and annotations of its job."""

    queue: str
    annotations: Mapping[str, str]

    def change(self) -> Object:
        spec = {"queue": self.queue} if self.queue else {}
        return {"metadata": {"annotations": dict(self.annotations)}, "spec": spec}


@dataclass(frozen=True, kw_only=True)
class _Resize(_SetSize):
    resource: Resource = MPI_JOBS

    def change(self) -> Operations:
        path = "/spec/mpiReplicaSpecs/Worker/replicas"
        return (_test("/metadata/uid", self.ref.uid), _test(path, self.before), _put(path, self.after))


class RollBack(_Resize):
    """Set the size of the job back, from `before` to `after`: with Fill the only write to its spec."""


class Fill(_Resize):
    """Set the size of a job that takes what lies idle, within its bounds."""


@dataclass(frozen=True, kw_only=True)
class _OfAutoscaler(_Noted):
    """A write of the HPA of a job. The answer must hold its digest: the API server adds defaults to its spec."""

    resource: Resource = AUTOSCALERS
    spec: Spec

    def kept(self) -> Object:
        return {"metadata": {"annotations": {names.SPEC: autoscale.digest(self.spec)}}}


@dataclass(frozen=True, kw_only=True)
class MakeAutoscaler(_OfAutoscaler, Create):
    """Create the HPA of a job, controlled by it."""

    job: Identity

    def content(self) -> Object:
        metadata = {
            "name": names.autoscaler(self.job.name),
            "labels": {names.LABEL_MANAGED_BY: names.PROGRAM},
            "ownerReferences": [controller(self.job)],
            **self.kept()["metadata"],
        }
        return {"metadata": metadata, "spec": self.spec}


@dataclass(frozen=True, kw_only=True)
class ChangeAutoscaler(_OfAutoscaler, Patch):
    """Change the HPA of a job, whose status its controller writes all the time."""

    at_version = False

    def change(self) -> Object:
        return {**self.kept(), "spec": self.spec}


@dataclass(frozen=True, kw_only=True)
class DeleteAutoscaler(_Noted, Delete):
    """Delete the HPA of a job."""

    at_version = False

    resource: Resource = AUTOSCALERS


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """So many pods of a Workload, which need what the pod `like` needs."""

    name: str
    count: int
    like: Identity


@dataclass(frozen=True, kw_only=True)
class CreateWorkload(Action):
    """Ask a queue of Kueue for the quota of pods, with a priority or that of a class."""

    words = "ask queue {self.queue} for quota with the Workload {self.name}"

    name: str
    queue: str
    pods: tuple[PodSet, ...]
    priority: int = 0
    priority_class: str = ""

    def about(self) -> tuple[object, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class StartPods(_OfGated):
    """Take the gate off pods whose quota is granted, and bind them to the nodes of its flavors."""

    flavors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _OfWorkload(Action):
    workload: Workload

    def about(self) -> tuple[object, ...]:
        return (self.workload.metadata.name,)


class MarkReady(_OfWorkload):
    """Say that the pods of a Workload run, which Kueue may wait for."""

    words = "tell Kueue that the pods of {self.workload.metadata.name} run"


class ClearWorkload(_OfWorkload):
    """Give preempted quota back: nothing runs any more for which it was meant. The Workload queues again."""

    words = "tell Kueue that the quota of {self.workload.metadata.name} is free"


class FinishWorkload(_OfWorkload):
    """Say that a job has finished: its quota is free."""

    words = "tell Kueue that {self.workload.metadata.name} has finished"


@dataclass(frozen=True, kw_only=True)
class DeleteWorkload(Delete):
    """Ask for the quota no more."""

    words = "delete the Workload {self.ref.name}"

    at_version = False

    resource: Resource = WORKLOADS


@dataclass(frozen=True, kw_only=True)
class AdoptWorkload(Patch):
    """Make the job the owner of a Workload that MultiKueue has made for it."""

    words = "make the job the owner of the Workload {self.ref.name}"

    resource: Resource = WORKLOADS
    job: Identity

    def change(self) -> Object:
        return {"metadata": {"ownerReferences": [controller(self.job)]}}


@dataclass(frozen=True, kw_only=True)
class CreateUnit(Action):
    """Ask KubeQueue for the quota of pods, `workers` of them workers."""

    words = "ask KubeQueue for quota with the QueueUnit {self.name}"

    name: str
    pods: tuple[PodSet, ...]
    workers: int

    def about(self) -> tuple[object, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class DeleteUnit(Delete):
    """Give the quota of a QueueUnit back, or ask for it no more."""

    words = "delete the QueueUnit {self.ref.name}"

    at_version = False

    resource: Resource = QUEUE_UNITS


@dataclass(frozen=True, kw_only=True)
class MarkRunning(Action):
    """Say that the job of a QueueUnit runs."""

    words = "say in the QueueUnit {self.unit.metadata.name} that the job runs"

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class ReleaseJob(_Noted):
    """Take KubeQueue's annotation off a job whose QueueUnit says, read live, that it may start."""

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class HoldJob(_Noted, _Annotate):
    """Put KubeQueue's annotation back on a job whose quota is wanted back."""

    key = names.KUBEQUEUE_SUSPEND

    resource: Resource = MPI_JOBS
    text: str = "true"


# For these, live objects of the queue are read first.
UnitWrite = CreateUnit | MarkRunning | ReleaseJob
QueueWrite = CreateWorkload | StartPods | MarkReady | ClearWorkload | FinishWorkload
UnitAction = UnitWrite | DeleteUnit | HoldJob
QueueAction = QueueWrite | AdoptWorkload | DeleteWorkload
AutoscalerAction = MakeAutoscaler | ChangeAutoscaler | DeleteAutoscaler
Look = ProbeWorkers | LookIntoLauncher


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The writes to do now, in this order, and the looks, which change no object.

    A write that is refused holds back no other, but what `needs_notice`.
    wake_at: when a write may be due without a change (seconds since the epoch, or None); look_at: when a look is.
    """

    actions: tuple[Action, ...] = ()
    looks: tuple[Look, ...] = ()
    wake_at: float | None = None
    look_at: float | None = None


def needs_notice(action: Action | Look) -> bool:
    """Tell whether a write may only follow the notice of its plan, and waits where that is refused.

    By the notice the webhook holds the next launcher of a suspended job back, and in it stands for how long another
    operator must be silent before its job is taken back again.
    """
    return (isinstance(action, DeleteLauncher) and action.suspends) or (
        isinstance(action, WriteConfig) and action.takes_back
    )


# The kind of a write, and what it is about.
Occasion = tuple[type[Action], tuple[object, ...]]


def occasion(action: Action) -> Occasion:
    """Return what counts as the same write."""
    return type(action), action.about()

"""Every write and every look on behalf of a job, as a value that carries its reason in words.

`act` does one API write for each action; gates and deletions take one for each pod, and frozen execs an exec each.
Beside these it writes only Events for a job. Install, upgrade, the webhook's certificates and the lease write on their
own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mpijob_elastic.capabilities.autoscaling.facts import Spec
from mpijob_elastic.capabilities.gangs.facts import Gang
from mpijob_elastic.capabilities.kube_queue.facts import QueueUnit
from mpijob_elastic.capabilities.kueue.facts import Workload
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import Launcher, Worker


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
class WriteRole:
    """Let the launcher exec into exactly `exec_names`."""

    ref: Identity
    exec_rule: int
    exec_names: tuple[str, ...]
    note: Note


@dataclass(frozen=True, kw_only=True)
class WriteConfig:
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


@dataclass(frozen=True, kw_only=True)
class RefreshLauncher:
    """Touch the launcher pod, so that its kubelet shows it the new ConfigMap at once.

    digest: for its annotation. again: the repetition, 0 for the first touch for this change. tries: counts this touch,
    should it be refused.
    """

    launcher: Launcher
    digest: str
    tries: Tries
    again: int = 0


@dataclass(frozen=True, kw_only=True)
class ProbeWorkers:
    """Look by exec whether anything but the main process runs in workers: leaving, or published.

    Probes of leaving workers come first, because somebody waits for their GPUs. drained: that is known, and their pods
    are being deleted, so the main process is told: it need not wait for a rank that may start.
    """

    workers: tuple[Worker, ...]
    published: bool = False
    drained: bool = False


@dataclass(frozen=True, kw_only=True)
class LookIntoLauncher:
    """Look by exec which `kubectl exec`s the launcher holds; `about`: why, so that no reason is looked into twice."""

    launcher: Launcher
    about: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class EndExecs:
    """End frozen `kubectl exec`s in the launcher, after the same decision was made again from live objects."""

    launcher: Launcher
    execs: tuple[Exec, ...]


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
class DeleteWorkers:
    """Delete pods in this order, after the same decision was made again from live objects."""

    removals: tuple[Removal, ...]


@dataclass(frozen=True, kw_only=True)
class ReleaseWorker:
    """Say on a worker that has drained that somebody else may delete it, by an annotation."""

    worker: Worker
    annotation: str
    mark: str
    note: Note


@dataclass(frozen=True, kw_only=True)
class DeleteLauncher:
    """Delete a launcher whose main container has never started, or of a suspended job; the operator recreates it.

    It goes without a grace period. [operator] Otherwise it would see the launcher end, and call the job Failed or
    Succeeded for ever: a kubelet reports the phase of every other pod before that is gone
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced). The kubelet still sends
    SIGTERM first. suspends: the job is suspended, which is read live before.
    """

    launcher: Launcher
    note: Note
    suspends: bool = False


@dataclass(frozen=True, kw_only=True)
class EndLauncher:
    """Have the kubelet end a launcher as Failed, by a deadline that has passed: the operator then fails the job."""

    DEADLINE: ClassVar = 1

    launcher: Launcher
    note: Note


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A pod that is held back, and the scheduling gates that it keeps, in order."""

    ref: Identity
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ungate:
    """Take scheduling gates of ours off pods, in this order; adds: what a capability puts into each by the same write."""

    pods: tuple[Gated, ...]
    adds: tuple[str, ...] = ()
    note: Note


@dataclass(frozen=True, kw_only=True)
class DeleteJob:
    """Delete a finished job at this version."""

    ref: Identity
    note: Note


@dataclass(frozen=True, kw_only=True)
class TellUser:
    """Tell the user what the job waits for: the new text of the annotation, and an Event for each new line."""

    ref: Identity
    text: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WriteSelector:
    """Write the selector of the workers into the job's status, where the subresource scale and an HPA read it."""

    ref: Identity
    selector: str


@dataclass(frozen=True, kw_only=True)
class _SetSize:
    ref: Identity
    before: int
    after: int
    note: Note


class LowerPodGroup(_SetSize):
    """Let a gang scheduler wait for fewer pods of the job: `after` instead of `before`."""


@dataclass(frozen=True, kw_only=True)
class MakePodGroup:
    """Create the PodGroup of a job, controlled by it."""

    job: Identity
    min_member: int
    gang: Gang
    note: Note


@dataclass(frozen=True, kw_only=True)
class TunePodGroup:
    """Give a PodGroup the queue ("" for the one that it has) and annotations of its job."""

    ref: Identity
    queue: str
    annotations: Mapping[str, str]
    note: Note


class RollBack(_SetSize):
    """Set the size of the job back, from `before` to `after`: with Fill the only write to its spec."""


class Fill(_SetSize):
    """Set the size of a job that takes what lies idle, within its bounds."""


@dataclass(frozen=True, kw_only=True)
class WriteAutoscaler:
    """Create the HPA of a job, or change it: `ref` is None if there is none."""

    job: Identity
    ref: Identity | None
    spec: Spec
    note: Note


@dataclass(frozen=True, kw_only=True)
class DeleteAutoscaler:
    """Delete the HPA of a job."""

    ref: Identity
    note: Note


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """So many pods of a Workload, which need what the pod `like` needs."""

    name: str
    count: int
    like: Identity


@dataclass(frozen=True, kw_only=True)
class CreateWorkload:
    """Ask a queue of Kueue for the quota of pods, with a priority or that of a class."""

    name: str
    queue: str
    pods: tuple[PodSet, ...]
    priority: int = 0
    priority_class: str = ""


@dataclass(frozen=True, kw_only=True)
class _OfWorkload:
    workload: Workload


class MarkReady(_OfWorkload):
    """Say that the pods of a Workload run, which Kueue may wait for."""


class ClearWorkload(_OfWorkload):
    """Give preempted quota back: nothing runs any more for which it was meant. The Workload queues again."""


class FinishWorkload(_OfWorkload):
    """Say that a job has finished: its quota is free."""


class DeleteWorkload(_OfWorkload):
    """Ask for the quota no more."""


class AdoptWorkload(_OfWorkload):
    """Make the job the owner of a Workload that MultiKueue has made for it."""


@dataclass(frozen=True, kw_only=True)
class CreateUnit:
    """Ask KubeQueue for the quota of pods, `workers` of them workers."""

    name: str
    pods: tuple[PodSet, ...]
    workers: int


@dataclass(frozen=True, kw_only=True)
class _OfUnit:
    unit: QueueUnit


class DeleteUnit(_OfUnit):
    """Give the quota of a QueueUnit back, or ask for it no more."""


class MarkRunning(_OfUnit):
    """Say that the job of a QueueUnit runs."""


@dataclass(frozen=True, kw_only=True)
class _SetHold(_OfUnit):
    note: Note


class ReleaseJob(_SetHold):
    """Take KubeQueue's annotation off a job whose QueueUnit says, read live, that it may start."""


class HoldJob(_SetHold):
    """Put KubeQueue's annotation back on a job whose quota is wanted back."""


UnitAction = CreateUnit | DeleteUnit | MarkRunning | ReleaseJob | HoldJob
QueueAction = AdoptWorkload | CreateWorkload | MarkReady | ClearWorkload | FinishWorkload | DeleteWorkload
AutoscalerAction = WriteAutoscaler | DeleteAutoscaler
Action = (
    WriteRole
    | WriteConfig
    | RefreshLauncher
    | DeleteWorkers
    | ReleaseWorker
    | DeleteLauncher
    | EndLauncher
    | DeleteJob
    | EndExecs
    | Ungate
    | TellUser
    | WriteSelector
    | MakePodGroup
    | LowerPodGroup
    | TunePodGroup
    | RollBack
    | Fill
    | UnitAction
    | QueueAction
    | AutoscalerAction
)
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
    """Return what is written, to which objects: as long as that is the same, trying again is the same try."""
    what: tuple[object, ...] = ()
    match action:
        case WriteConfig():
            what = (action.script, action.hostfile)
        case WriteRole():
            what = action.exec_names
        case TellUser():
            what = (action.text,)
        case DeleteWorkers():
            what = tuple(removal.worker.name for removal in action.removals)
        case ReleaseWorker():
            what = (action.worker.name,)
        case Ungate():
            what = tuple(gated.ref.name for gated in action.pods)
        case _SetSize():
            what = (action.after,)
        case CreateWorkload() | CreateUnit():
            what = (action.name,)
        case _OfWorkload():
            what = (action.workload.metadata.name,)
    return type(action), what

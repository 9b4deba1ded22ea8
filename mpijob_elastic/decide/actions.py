"""Every write and every look on behalf of a job, as a value that carries its reason in words.

A `Patch`, `Create` or `Delete` says all that is sent; `act.writer` sends each of these three in one
function. For the other actions `act` reads live objects first, or writes to many pods, or ends
frozen execs by an exec. Besides these actions, `act` writes only Events for a job. Install,
upgrade, the webhook's certificates and the lease do their own writes.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.model.json_parts import controller, owner
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker

Object = Mapping[str, Any]
# Operations of a JSON patch.
Operations = Sequence[Object]


@dataclass(frozen=True, kw_only=True)
class Note:
    """An Event for the user."""

    reason: str
    message: str
    warning: bool = False
    #: A command for the user to type next; only `explain` shows it.
    next_step: str = ""
    #: Words that may change at any moment; only `explain` shows them.
    detail: str = ""
    #: The message with what may change at any moment; only `explain` shows it, instead.
    exact: str = ""
    #: The webhook reads the note when the operator makes the next pod.
    shapes_pods: bool = False

    @property
    def line(self) -> str:
        """The note in the job's annotation."""
        return f"{self.reason}: {self.message}"


def normal(
    reason: str, message: str, *, next_step: str = "", detail: str = "", exact: str = ""
) -> Note:
    """Return a note on something that happens as it should."""
    return Note(reason=reason, message=message, next_step=next_step, detail=detail, exact=exact)


def warning(reason: str, message: str, *, next_step: str = "", detail: str = "") -> Note:
    """Return a warning on a single line, even if it quotes a user's value of several lines.

    The annotation holds one note in each line.
    """
    return Note(
        reason=reason,
        message=" ".join(message.split()),
        warning=True,
        next_step=next_step,
        detail=detail,
    )


@dataclass(frozen=True, kw_only=True)
class Action:
    """A write on behalf of a job."""

    #: The words for a plan, formatted with `self`; "" if the notes of the action say what it does.
    words: ClassVar[str] = ""
    #: True for an own write of a capability that depends on what runs: such a write is decided
    #: again from pods read live, because the caches of a new leader may lag.
    rechecked: ClassVar[bool] = False
    #: True for an own write of a capability that gives quota back, or asks for it to be given back:
    #: it is due although a pod of the job cannot be read.
    frees: ClassVar[bool] = False

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes for the user once the write is done."""
        return ()

    @property
    def told_on(self) -> "tuple[Resource, Identity] | None":
        """The object that the notes are Events on; None for the MPIJob."""
        return None

    def says(self) -> str:
        """Return the words for a plan, in one or more lines."""
        return self.words.format(self=self) or "\n".join(note.message for note in self.notes)

    def about(self) -> tuple[object, ...]:
        """Return what is written, and to which objects: a write equal in both is a retry."""
        return ()

    def deletes(self) -> tuple[str, ...]:
        """Return the names of the pods that the write deletes."""
        return ()

    def without(self, pods: Collection[str]) -> "Action | None":
        """Return the write without the deletion of these pods; None if nothing of it is left."""
        if any(pod in pods for pod in self.deletes()):
            return None
        return self


@dataclass(frozen=True, kw_only=True)
class Noted(Action):
    """A write that the user is told of in one note."""

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
        """Return the new object without its apiVersion and kind."""

    def kept(self) -> Object:
        """Return the part of the object that the answer of the API server must hold."""
        return {}

    def body(self) -> Object:
        """Return the new object."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            **self.content(),
        }


@dataclass(frozen=True, kw_only=True)
class _OfObject(Action):
    """A write to an object that exists."""

    #: True if the object must still have the resourceVersion on which the write was decided; False
    #: if the same uid is enough.
    at_version: ClassVar[bool] = True

    resource: Resource
    ref: Identity

    def about(self) -> tuple[object, ...]:
        return (self.ref.name,)


class Delete(_OfObject):
    """Delete an object."""

    def deletes(self) -> tuple[str, ...]:
        if self.resource == PODS:
            return (self.ref.name,)
        return ()


@dataclass(frozen=True, kw_only=True)
class Patch(_OfObject, ABC):
    """Change an object.

    An answer that lacks the change is an error: an admission plugin changes what we write.
    """

    subresource: ClassVar[str | None] = None

    @abstractmethod
    def change(self) -> Object | Operations:
        """Return the change without its precondition: a merge patch, or a JSON patch."""

    def kept(self) -> Object | Operations:
        """Return the part of the object that the answer of the API server must hold."""
        return self.change()

    def body(self) -> Object | Operations:
        """Return the patch with its precondition, without which the API server refuses it."""
        change, version = self.change(), self.ref.resource_version
        if isinstance(change, Mapping):
            same = {
                "uid": self.ref.uid,
                **({"resourceVersion": version} if self.at_version else {}),
            }
            return {**change, "metadata": {**change.get("metadata", {}), **same}}
        if self.at_version:
            return (
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
                *change,
            )
        return (test("/metadata/uid", self.ref.uid), *change)


def test(path: str, value: object) -> Object:
    """Return the operation by which the API server refuses a patch unless `path` has `value`."""
    return {"op": "test", "path": path, "value": value}


def put(path: str, value: object) -> Object:
    """Return the operation that sets `path` to `value`."""
    return {"op": "add", "path": path, "value": value}


@dataclass(frozen=True, kw_only=True)
class Adopt(Patch):
    """Make a job and some of its pods the owners of an object, which stays until all are gone."""

    job: Identity
    pods: tuple[Identity, ...] = ()

    def change(self) -> Object:
        return {
            "metadata": {
                "ownerReferences": [controller(self.job), *(owner(PODS, pod) for pod in self.pods)]
            }
        }


@dataclass(frozen=True, kw_only=True)
class Annotate(Patch):
    """Set one annotation of ours, or remove it if the text is "".

    Only the uid is checked, so a write of another program to the object is no conflict.
    """

    at_version = False
    key: str
    text: str

    def change(self) -> Object:
        return {"metadata": {"annotations": {self.key: self.text or None}}}


@dataclass(frozen=True, kw_only=True)
class WriteRole(Noted, Patch):
    """Let the launcher exec into exactly `exec_names`."""

    resource: Resource = ROLES
    exec_rule: int
    exec_names: tuple[str, ...]

    def change(self) -> Operations:
        rule = f"/rules/{self.exec_rule}"
        return (
            test(f"{rule}/resources", ["pods/exec"]),
            put(f"{rule}/resourceNames", list(self.exec_names)),
        )

    def about(self) -> tuple[object, ...]:
        return self.exec_names


@dataclass(frozen=True, kw_only=True)
class WriteConfig(Action):
    """Publish a host list: script, hostfile, memory and a changed kubexec.sh in a single write."""

    ref: Identity
    script: str
    hostfile: str
    memory: Memory
    #: The new kubexec.sh; None if it stays as it is.
    kubexec: str | None = None
    #: The new elastic.sh; None if it stays as it is.
    elastic: str | None = None
    #: Annotations of capabilities that the write sets, with their texts.
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: The pods that the write adds to the list.
    added: tuple[str, ...] = ()
    #: The pods that the write removes from the list.
    removed: tuple[str, ...] = ()
    #: The removed pods that should have stayed: nobody asked them to leave.
    lost: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    #: The write takes the job back from another operator.
    takes_back: bool = False
    #: The pods about which the write reminds Horovod's driver; () unless it does nothing else.
    reminds: tuple[str, ...] = ()

    def says(self) -> str:
        if self.reminds:
            return f"remind Horovod's driver of the host list, because of {listed(self.reminds)}"
        changes = {
            f"publish {listed(self.added)} in {names.KEY_DISCOVER_HOSTS}": self.added,
            f"remove {listed(self.removed)} from {names.KEY_DISCOVER_HOSTS}": self.removed,
        }
        other = (
            f"update {names.KEY_HOSTFILE}, {names.KEY_DISCOVER_HOSTS} or the memory in ConfigMap "
            f"{self.ref.name}"
        )
        return "\n".join(words for words, pods in changes.items() if pods) or other

    def about(self) -> tuple[object, ...]:
        return self.script, self.hostfile


@dataclass(frozen=True, kw_only=True)
class RefreshLauncher(Annotate):
    """Touch the launcher pod, so that its kubelet shows it the new ConfigMap at once.

    The text of the annotation is a `config_map.mark`.
    """

    key: str = names.REFRESHED
    resource: Resource = PODS
    #: The count of refused touches to keep if this touch is refused, too.
    tries: Tries
    #: The number of the repetition; 0 for the first touch.
    again: int = 0

    def says(self) -> str:
        again = " again, because ranks may still run in leaving workers" if self.again else ""
        return (
            f"touch {self.ref.name}{again}, so that its kubelet refreshes "
            f"{names.KEY_DISCOVER_HOSTS} now"
        )


@dataclass(frozen=True, kw_only=True)
class ProbeWorkers:
    """Look by exec whether anything but the main process runs in workers.

    Looks into leaving workers come before looks into published workers.
    """

    workers: tuple[Worker, ...]
    #: True for published workers, False for leaving workers.
    published: bool = False
    #: True if the workers have drained and their pods are being deleted: then the look tells each
    #: main process not to wait for a rank to start.
    drained: bool = False

    def says(self) -> str:
        """Return the words for a plan.

        Only the controller knows when it last looked into published workers, so the words for these
        do not say that the look is due.
        """
        pods = listed(pod.name for pod in self.workers)
        if self.drained:
            return f"tell the main process of {pods} by exec that its worker has drained"
        question = ", from time to time, that ranks" if self.published else " whether ranks still"
        return f"check by exec{question} run in {pods}"


@dataclass(frozen=True, kw_only=True)
class LookIntoLauncher:
    """Look by exec which `kubectl exec`s the launcher holds."""

    launcher: Launcher
    #: The reasons for the look, kept so that no reason leads to a second look.
    about: frozenset[str]
    #: For a roll call, which has no reason and may wait: the host names of the workers that are
    #: called, by pod.
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_roll_call(self) -> bool:
        """True if it looks for the execs into some workers, whatever the reason."""
        return bool(self.called)

    def says(self) -> str:
        """Return the words for a plan; only the controller knows when it last looked."""
        if self.is_roll_call:
            return f"check by exec, now and then, that {self.launcher.ref.name} holds all ranks"
        return (
            f"check by exec, unless just done, that {self.launcher.ref.name} holds no exec into a "
            "pod that is gone"
        )


@dataclass(frozen=True, kw_only=True)
class LookAtDriver:
    """Read by exec the acknowledgement of elastic.sh in the launcher."""

    launcher: Launcher

    def says(self) -> str:
        """Return the words for a plan."""
        return f"check by exec on which workers ranks of {self.launcher.ref.name} may run"


@dataclass(frozen=True, kw_only=True)
class EndExecs(Action):
    """End frozen `kubectl exec`s in the launcher, once live objects give the same decision."""

    launcher: Launcher
    execs: tuple[Exec, ...]

    def says(self) -> str:
        pods = listed(sorted({found.pod for found in self.execs}))
        return f"end frozen `kubectl exec` into {pods} in {self.launcher.ref.name}"


@dataclass(frozen=True, kw_only=True)
class Removal:
    """One worker to delete."""

    worker: Worker
    #: The reason why the deletion is safe, in a word.
    outcome: str
    note: Note
    #: The seconds that the pod has to end; None for the grace period that the pod itself gives.
    grace: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeleteWorkers(Action):
    """Delete workers in this order, once live objects give the same decision."""

    removals: tuple[Removal, ...]

    def says(self) -> str:
        return "\n".join(removal.note.message for removal in self.removals)

    def about(self) -> tuple[object, ...]:
        return self.deletes()

    def deletes(self) -> tuple[str, ...]:
        return tuple(removal.worker.name for removal in self.removals)

    def without(self, pods: Collection[str]) -> "DeleteWorkers | None":
        left = tuple(removal for removal in self.removals if removal.worker.name not in pods)
        if left:
            return DeleteWorkers(removals=left)
        return None


@dataclass(frozen=True, kw_only=True)
class ReleaseWorker(Noted, Annotate):
    """Mark a worker that has drained, so that another controller may delete it."""

    resource: Resource = PODS


@dataclass(frozen=True, kw_only=True)
class DeleteLauncher(Noted):
    """Delete a launcher, so that the operator creates the next one.

    The main container of the launcher has never started, or the job is suspended. The pod is
    deleted without a grace period. Otherwise [operator] would see the launcher end, and would call
    the job Failed or Succeeded for ever: a kubelet reports the final phase of every other pod
    before the pod is gone
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced).
    The kubelet still sends SIGTERM first.
    """

    launcher: Launcher
    #: The job is suspended; that is read live once more before the deletion.
    suspends: bool = False
    #: The next launcher waits for quota anyway.
    waits: bool = False

    def deletes(self) -> tuple[str, ...]:
        return (self.launcher.ref.name,)


@dataclass(frozen=True, kw_only=True)
class EndLauncher(Noted, Patch):
    """Have the kubelet end a launcher as Failed, after which the operator fails the job.

    The write sets a deadline that has passed already.
    """

    #: Seconds after the start of the pod.
    DEADLINE: ClassVar = 1

    resource: Resource = PODS

    def change(self) -> Operations:
        return (put("/spec/activeDeadlineSeconds", self.DEADLINE),)


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A pod that is held back."""

    ref: Identity
    #: The scheduling gates that the pod keeps, in order.
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ungate(Noted):
    """Take our scheduling gates off pods, in this order."""

    pods: tuple[Gated, ...]
    #: The changes that a capability makes to each pod in the same write.
    adds: tuple[str, ...] = ()

    def says(self) -> str:
        return f"take the scheduling gate off {listed(gated.ref.name for gated in self.pods)}"

    def about(self) -> tuple[object, ...]:
        return tuple(gated.ref.name for gated in self.pods)


@dataclass(frozen=True, kw_only=True)
class TellUser(Annotate):
    """Write the notices into the job's annotation, with an Event for each new line."""

    key: str = names.STATUS
    resource: Resource = MPI_JOBS
    notes: tuple[Note, ...] = ()
    #: Other annotations that the same write changes, with their texts; "" removes an annotation.
    marks: Mapping[str, str] = field(default_factory=dict)
    #: The write changes only `marks`, and leaves the notices as they are.
    only_marks: bool = False

    def change(self) -> Object:
        texts = self.marks if self.only_marks else {self.key: self.text, **self.marks}
        return {"metadata": {"annotations": {key: text or None for key, text in texts.items()}}}

    def says(self) -> str:
        if self.only_marks:
            return "note on the job what is under way"
        if names.is_handed_over(self.text):
            return "note on the job that another operator manages it"
        if self.text:
            return "update the notices on the job"
        return "remove the notices from the job"

    def about(self) -> tuple[object, ...]:
        return self.text, *self.marks


@dataclass(frozen=True, kw_only=True)
class WriteSelector(Patch):
    """Write the selector of the workers into the job's status, for the subresource scale.

    The write is a JSON patch, whose test of the uid counts. From a merge patch of the status the
    API server takes only the status, so a uid in it would not count.
    """

    at_version = False
    subresource = "status"
    words = "restore the selector of the workers in the job's status"

    resource: Resource = MPI_JOBS
    selector: str

    def change(self) -> Operations:
        return (put("/status/replicaStatuses/Worker/selector", self.selector),)


@dataclass(frozen=True, kw_only=True)
class SetSize(Noted, Patch):
    """Set the size of a job, from `before` to `after`."""

    before: int
    after: int

    def about(self) -> tuple[object, ...]:
        return (self.after,)


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """Some pods of a Workload that need the same resources."""

    name: str
    count: int
    #: A pod with the needs of each of them.
    like: Identity


Look = ProbeWorkers | LookIntoLauncher | LookAtDriver


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The writes and looks that are due for a job.

    A write that is refused holds back no other write, except a write that `needs_notice`.
    """

    #: The writes to do now, in this order.
    actions: tuple[Action, ...] = ()
    #: The looks to take now; a look changes no object.
    looks: tuple[Look, ...] = ()
    #: The time at which a write may be due without a change (seconds since the epoch); None if no
    #: write will be.
    wake_at: float | None = None
    #: The time at which a look is due (seconds since the epoch); None if no look will be.
    look_at: float | None = None


def needs_notice(action: Action | Look) -> bool:
    """Tell whether a write has to wait until the notice of its plan is written.

    The deletion of a suspended job's launcher waits where no queue holds the next launcher back:
    the webhook does so by the notice. The write that takes a job back waits because the notice
    says for how long the other operator must be silent before the next try.
    """
    return (isinstance(action, DeleteLauncher) and action.suspends and not action.waits) or (
        isinstance(action, WriteConfig) and action.takes_back
    )


def is_late(action: Action) -> bool:
    """Tell whether a write has to wait for a round in which nothing else is written.

    Marks say what is under way, so each other write may change them. Beside another write they
    would hold up what follows, and cost the webhook and the operator a look at the job.
    """
    return isinstance(action, TellUser) and action.only_marks


# The class of a write, and what the write is about (`Action.about`).
Occasion = tuple[type[Action], tuple[object, ...]]


def occasion(action: Action) -> Occasion:
    """Return a key that is equal for equal writes."""
    return type(action), action.about()

"""Every write and every look on behalf of a job, as a value that carries its reason in words.

A `Patch`, `Create` or `Delete` says all that is sent; `act.writer` sends each of these three in one
function. For the other actions `act` reads live objects first, or writes to many pods; frozen execs
take an exec each. Beside these it writes only Events for a job. Install, upgrade, the webhook's
certificates and the lease write on their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker
from mpijob_elastic.model.wire import controller, owner

Object = Mapping[str, Any]
# Operations of a JSON patch.
Operations = Sequence[Object]


@dataclass(frozen=True, kw_only=True)
class Note:
    """An Event for the user.

    For `explain` alone: next_step, a command, and detail, words that change at any moment.
    """

    reason: str
    message: str
    warning: bool = False
    next_step: str = ""
    detail: str = ""

    @property
    def line(self) -> str:
        """The note in the job's annotation."""
        return f"{self.reason}: {self.message}"


def normal(reason: str, message: str, *, next_step: str = "", detail: str = "") -> Note:
    """Return a note on what happens as it should."""
    return Note(reason=reason, message=message, next_step=next_step, detail=detail)


def warning(reason: str, message: str, *, next_step: str = "", detail: str = "") -> Note:
    """Return a warning on a single line: the annotation holds a note a line, and a user's value may have several."""
    return Note(
        reason=reason,
        message=" ".join(message.split()),
        warning=True,
        next_step=next_step,
        detail=detail,
    )


@dataclass(frozen=True, kw_only=True)
class Action:
    """A write on behalf of a job.

    words: what it does, if its notes do not say that, formatted with itself. rechecked: an own
    write of a capability that rests on what runs is decided again on pods read live, as a new
    leader's caches may lag.
    """

    words: ClassVar[str] = ""
    rechecked: ClassVar[bool] = False

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to tell the user once it is done."""
        return ()

    @property
    def told_on(self) -> "tuple[Resource, Identity] | None":
        """The object that the notes are Events on; None for the MPIJob."""
        return None

    def says(self) -> str:
        """What it does, in words for a plan: a line, or several."""
        return self.words.format(self=self) or "\n".join(note.message for note in self.notes)

    def about(self) -> tuple[object, ...]:
        """What is written, to which objects: as long as that is the same, trying again is the same try."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Noted(Action):
    """A write that is told in one note."""

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
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            **self.content(),
        }


@dataclass(frozen=True, kw_only=True)
class _OfObject(Action):
    """A write to an object that is there.

    at_version: the object must be as it was when that was decided; else only have the same uid.
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
    """Change an object.

    An answer that lacks the change is an error: an admission plugin changes what we write.
    """

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
    """Return the operation that the API server refuses unless there is that value."""
    return {"op": "test", "path": path, "value": value}


def put(path: str, value: object) -> Object:
    """Return the operation that sets a value."""
    return {"op": "add", "path": path, "value": value}


@dataclass(frozen=True, kw_only=True)
class Adopt(Patch):
    """Make a job and pods of it the owners of an object, which stays until all of them are gone."""

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
    """Set an annotation of ours alone, so that a write of others beside it is no conflict; without a text it goes."""

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
    """Publish a host list: script, hostfile and memory in a single write, and kubexec.sh if it must change.

    added, removed: pods. lost: of the removed what nobody asked to leave. takes_back: from another
    operator.
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
class RefreshLauncher(Annotate):
    """Touch the launcher pod, so that its kubelet shows it the new ConfigMap at once.

    text: config_map.mark. again: the repetition, 0 for the first touch. tries: counts it, should it
    be refused.
    """

    key: str = names.REFRESHED
    resource: Resource = PODS
    tries: Tries
    again: int = 0

    def says(self) -> str:
        again = " again, because ranks may still run in leaving workers" if self.again else ""
        return f"touch {self.ref.name}{again}, so that its kubelet refreshes {names.KEY_DISCOVER_HOSTS} now"


@dataclass(frozen=True, kw_only=True)
class ProbeWorkers:
    """Look by exec whether anything but the main process runs in workers: leaving, which come first, or published.

    drained: none runs, and the pods are being deleted: the main process is told not to wait for a
    rank that may start.
    """

    workers: tuple[Worker, ...]
    published: bool = False
    drained: bool = False

    def says(self) -> str:
        """What it does, in words for a plan.

        Only the controller knows when it last looked into published workers.
        """
        pods = listed(pod.name for pod in self.workers)
        if self.drained:
            return f"tell the main process of {pods} by exec that its worker has drained"
        question = ", from time to time, that ranks" if self.published else " whether ranks still"
        return f"check by exec{question} run in {pods}"


@dataclass(frozen=True, kw_only=True)
class LookIntoLauncher:
    """Look by exec which `kubectl exec`s the launcher holds; about: why, so that no reason is looked into twice."""

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
    """One worker to delete. outcome: why that is safe, in a word. grace: seconds to end, None for what the pod says."""

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
class ReleaseWorker(Noted, Annotate):
    """Say on a worker that has drained that somebody else may delete it."""

    resource: Resource = PODS


@dataclass(frozen=True, kw_only=True)
class DeleteLauncher(Noted):
    """Delete a launcher whose main container has never started, or of a suspended job; the operator recreates it.

    It goes without a grace period. [operator] Otherwise it would see the launcher end, and call the
    job Failed or Succeeded for ever: a kubelet reports the phase of every other pod before that is
    gone (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced).
    The kubelet still sends SIGTERM first. suspends: it is read live before that the job is
    suspended. waits: the next waits for quota anyway.
    """

    launcher: Launcher
    suspends: bool = False
    waits: bool = False


@dataclass(frozen=True, kw_only=True)
class EndLauncher(Noted, Patch):
    """Have the kubelet end a launcher as Failed, by a deadline that has passed: the operator then fails the job."""

    DEADLINE: ClassVar = 1

    resource: Resource = PODS

    def change(self) -> Operations:
        return (put("/spec/activeDeadlineSeconds", self.DEADLINE),)


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A pod that is held back, and the scheduling gates that it keeps, in order."""

    ref: Identity
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ungate(Noted):
    """Take scheduling gates of ours off pods, in this order; adds: what a capability puts into each by that write."""

    pods: tuple[Gated, ...]
    adds: tuple[str, ...] = ()

    def says(self) -> str:
        return f"take the scheduling gate off {listed(gated.ref.name for gated in self.pods)}"

    def about(self) -> tuple[object, ...]:
        return tuple(gated.ref.name for gated in self.pods)


@dataclass(frozen=True, kw_only=True)
class TellUser(Annotate):
    """Tell the user what the job waits for: the new text of the annotation, and an Event for each new line.

    marks: other annotations that change by the same write, "" where they go. only_marks: the text
    stays.
    """

    key: str = names.STATUS
    resource: Resource = MPI_JOBS
    notes: tuple[Note, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    only_marks: bool = False

    def change(self) -> Object:
        texts = self.marks if self.only_marks else {self.key: self.text, **self.marks}
        return {"metadata": {"annotations": {key: text or None for key, text in texts.items()}}}

    def says(self) -> str:
        if self.only_marks:
            return "note on the job what is under way"
        if names.is_handed_over(self.text):
            return "note on the job that another operator manages it"
        return "update the notices on the job" if self.text else "remove the notices from the job"

    def about(self) -> tuple[object, ...]:
        return self.text, *self.marks


@dataclass(frozen=True, kw_only=True)
class WriteSelector(Patch):
    """Write the selector of the workers into the job's status, where the subresource scale reads it.

    By JSON patch: of a patch of the status the API server takes only that, so a uid in a merge
    patch would not count.
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
    """A size, from `before` to `after`."""

    before: int
    after: int

    def about(self) -> tuple[object, ...]:
        return (self.after,)


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """So many pods of a Workload, which need what the pod `like` needs."""

    name: str
    count: int
    like: Identity


Look = ProbeWorkers | LookIntoLauncher


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The writes to do now, in this order, and the looks, which change no object.

    A write that is refused holds back no other, but what `needs_notice`. wake_at: when a write may
    be due without a change (seconds since the epoch, or None); look_at: when a look is.
    """

    actions: tuple[Action, ...] = ()
    looks: tuple[Look, ...] = ()
    wake_at: float | None = None
    look_at: float | None = None


def needs_notice(action: Action | Look) -> bool:
    """Tell whether a write may only follow the notice of its plan, and waits where that is refused.

    By the notice the webhook holds the next launcher of a suspended job back, where no queue does,
    and in it stands for how long another operator must be silent before its job is taken back
    again.
    """
    return (isinstance(action, DeleteLauncher) and action.suspends and not action.waits) or (
        isinstance(action, WriteConfig) and action.takes_back
    )


# The kind of a write, and what it is about.
Occasion = tuple[type[Action], tuple[object, ...]]


def occasion(action: Action) -> Occasion:
    """Return a key that is equal for equal writes."""
    return type(action), action.about()

"""Every write and every look on behalf of a job, as a value that carries its reason in words.

`act` does one API write for each action; deletions take a DELETE for each pod, and frozen execs an exec each. Beside
these it writes only Events for a job. Install, upgrade, the webhook's certificates and the lease write on their own.
"""

from dataclasses import dataclass

from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import Launcher, Ref, Worker
from mpijob_elastic.model.memory import Memory, Tries


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

    ref: Ref
    exec_rule: int
    exec_names: tuple[str, ...]
    note: Note


@dataclass(frozen=True, kw_only=True)
class WriteConfig:
    """Publish a host list: script, hostfile and memory in a single write, and kubexec.sh if it must change.

    added, removed: the pods that come and go. lost: those of the removed that nobody asked to leave.
    """

    ref: Ref
    script: str
    hostfile: str
    memory: Memory
    kubexec: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


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

    Probes of leaving workers come first, because somebody waits for their GPUs.
    """

    workers: tuple[Worker, ...]
    published: bool = False


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
class DeleteLauncher:
    """Delete a launcher whose main container has never started; the operator recreates it."""

    launcher: Launcher
    note: Note


@dataclass(frozen=True, kw_only=True)
class TellUser:
    """Tell the user what the job waits for: the new text of the annotation, and an Event for each new line."""

    ref: Ref
    text: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WriteSelector:
    """Write the selector of the workers into the job's status, where the subresource scale and an HPA read it."""

    ref: Ref
    selector: str


@dataclass(frozen=True, kw_only=True)
class _SetSize:
    ref: Ref
    before: int
    after: int
    note: Note


class LowerPodGroup(_SetSize):
    """Let a gang scheduler wait for fewer pods of the job: `after` instead of `before`."""


class RollBack(_SetSize):
    """Set the size of the job back, from `before` to `after`: the only write to its spec."""


Action = (
    WriteRole
    | WriteConfig
    | RefreshLauncher
    | DeleteWorkers
    | DeleteLauncher
    | EndExecs
    | TellUser
    | WriteSelector
    | LowerPodGroup
    | RollBack
)
Look = ProbeWorkers | LookIntoLauncher


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The writes to do now, in this order, and the looks, which change nothing.

    wake_at: when a write may be due without a change (seconds since the epoch, or None); look_at: when a look is.
    """

    actions: tuple[Action, ...] = ()
    looks: tuple[Look, ...] = ()
    wake_at: float | None = None
    look_at: float | None = None

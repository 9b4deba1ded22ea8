"""Every write we can make for a job, as a value that carries its reason in words.

`act` does one API write for each, except that a batch of deletions is one DELETE a pod. Nothing else is ever written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mpijob_elastic.model.job import Launcher, Ref, Worker
from mpijob_elastic.model.memory import Memory


@dataclass(frozen=True, kw_only=True)
class Note:
    """What the user reads of an action: an Event's reason (CamelCase) and message; `warning` makes it one."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, kw_only=True)
class WriteRole:
    """Let the launcher exec into exactly `exec_names`."""

    ref: Ref
    exec_rule: int
    before: tuple[str, ...]
    exec_names: tuple[str, ...]
    note: Note


@dataclass(frozen=True, kw_only=True)
class WriteConfig:
    """Publish a host list: script, hostfile and memory in one write, and kubexec.sh where it must change.

    added, removed: the pods that come and go.
    """

    ref: Ref
    script: str
    hostfile: str
    memory: Memory
    kubexec: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RefreshLauncher:
    """Touch the launcher pod, so that its kubelet shows it the new ConfigMap at once. digest: for its annotation."""

    launcher: Launcher
    digest: str


@dataclass(frozen=True, kw_only=True)
class ProbeWorkers:
    """Look by exec whether anything but the main process still runs in leaving workers. No write."""

    workers: tuple[Worker, ...]


@dataclass(frozen=True, kw_only=True)
class Removal:
    """One worker to delete, and why that is safe now; `outcome` is a metric label (drained, timeout, unused, ...)."""

    worker: Worker
    outcome: str
    note: Note


@dataclass(frozen=True, kw_only=True)
class DeleteWorkers:
    """Delete pods in this order, after the same decision was made again from live objects."""

    removals: tuple[Removal, ...]


@dataclass(frozen=True, kw_only=True)
class DeleteLauncher:
    """Delete a launcher whose main container has never started; the operator creates it anew."""

    launcher: Launcher
    note: Note


@dataclass(frozen=True, kw_only=True)
class TellUser:
    """Say on the job what it waits for: the annotation's new text, and an Event for each thing newly said."""

    ref: Ref
    text: str
    notes: tuple[Note, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class WriteSelector:
    """Say in the job's status how its workers are found: what `kubectl get --raw .../scale` and an HPA read."""

    ref: Ref
    selector: str


@dataclass(frozen=True, kw_only=True)
class LowerPodGroup:
    """Have a gang scheduler wait for fewer of the job's pods: `min_member` instead of `before`."""

    ref: Ref
    before: int
    min_member: int
    note: Note


@dataclass(frozen=True, kw_only=True)
class RollBack:
    """Set the job's size back, from `before` to `replicas`: the one write to its spec."""

    ref: Ref
    before: int
    replicas: int
    note: Note


Action = (
    WriteRole
    | WriteConfig
    | RefreshLauncher
    | ProbeWorkers
    | DeleteWorkers
    | DeleteLauncher
    | TellUser
    | WriteSelector
    | LowerPodGroup
    | RollBack
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do now, in this order, and when to look again without being woken by a change (seconds, or None)."""

    actions: tuple[Action, ...] = ()
    wake_at: float | None = None

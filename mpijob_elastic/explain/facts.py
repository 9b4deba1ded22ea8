"""A job or a worker to explain, all that is known of it, and what is found.

Times are seconds since the epoch.

Findings are the parts of an explanation, as `-o json` and `-o yaml` print them; field names are
camelCase there. `Facts` stand beside the controller's view. Each has a default that means "not
known", because few users may read all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

import msgspec
from msgspec import structs

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.host_list import Next
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.explain.logged_ranks import Spawned, Stall
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, Worker

# The suffix of a worker's finding when a finding on the job, printed above, says more.
ABOVE = " (see above)"


class Level(StrEnum):
    """fine: as it should be; waiting: resolves by itself; wrong: somebody has to act; unknown: nobody could look."""

    FINE = "fine"
    WAITING = "waiting"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    """One cause: its name for programs, a sentence for people, and the command to type next ("" where none helps)."""

    cause: str
    says: str
    next_step: str = ""
    level: Level = Level.WRONG

    @property
    def alone(self) -> str:
        """The sentence where nothing stands above it."""
        return self.says.replace(ABOVE, "")

    def about(self, name: str) -> Finding:
        """Return the finding with the object's name in front of its words."""
        return (
            self
            if self.says.startswith(f"{name} ")
            else structs.replace(self, says=f"{name} {self.says}")
        )


fine = partial(Finding, level=Level.FINE)
waiting = partial(Finding, level=Level.WAITING)
wrong = partial(Finding, level=Level.WRONG)


class WorkerFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The cause that holds for one worker; host: its name in discover_hosts.sh, "" while it has none.

    wanted: the desired size includes it.
    """

    name: str
    host: str
    wanted: bool
    cause: Finding


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every finding on a job and the finding on each worker; no workers where the job is over or not ours.

    training: wanted workers in which exec has shown a rank. all_train: every wanted worker trains,
    and nothing is wrong. Both are None where that is not known; not_known: why. notices: the
    controller's.
    """

    namespace: str
    name: str
    state: str
    desired: int | None
    training: int | None
    all_train: bool | None
    not_known: str
    job: tuple[Finding, ...]
    workers: tuple[WorkerFinding, ...]
    notices: list[str]


@dataclass(frozen=True, kw_only=True)
class Stuck:
    """A container that does not start or restarts again and again: the kubelet's reason and message."""

    container: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, kw_only=True)
class Pod:
    """The state of a pod in the words of scheduler and kubelet.

    unscheduled: why no node takes it, "" once a node has. unready: why it is not Ready. ended:
    `CONTAINER: REASON` of containers that ended, also before a restart.
    """

    unscheduled: str = ""
    stuck: Stuck | None = None
    unready: str = ""
    ended: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The result of an exec into a worker: names of processes beside its main process, or `error`."""

    processes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts on one job.

    state: the job's, in one word. resized_at: since when it has its size, at the latest. pods: by
    name. events: the newest warning on an object, by its name. surplus: when workers beyond the
    size were created, by name. home: the namespace of controller and webhook. controller, webhook:
    what keeps them from working, "" where nothing does. launch: how horovodrun was started. looks:
    by worker, none with --no-exec. stall: what the launcher's log says of missing ranks; spawned:
    whose they may be.
    """

    state: str = ""
    created_at: float = 0.0
    resized_at: float = 0.0
    pods: Mapping[str, Pod] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    surplus: Mapping[str, float] = field(default_factory=dict)
    home: str = names.NAMESPACE
    controller: str = ""
    webhook: str = ""
    launch: Launch | None = None
    role_readable: bool = True
    looks: Mapping[str, Look] = field(default_factory=dict)
    stall: Stall | None = None
    spawned: Spawned | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job, or the worker or launcher of that name in it. following: the next step of the host list."""

    state: JobState
    facts: Facts
    following: Next
    name: str

    def of(self, name: str) -> Case:
        """Return the case of a pod of the same job."""
        return replace(self, name=name)

    @property
    def view(self) -> JobView:
        """The job's view."""
        return self.state.view

    @property
    def launcher(self) -> str:
        """The launcher's name."""
        return names.launcher(self.view.name)

    @property
    def pod(self) -> Launcher | Worker | None:
        """The pod of that name."""
        return self.view.launcher if self.name == self.launcher else self.view.worker(self.name)

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates of the pod."""
        return self.pod.facts.gates if self.pod else ()

    @property
    def held_back(self) -> bool:
        """True if it is meant to wait: only gates of ours hold it back."""
        return bool(self.gates) and names.GATES.issuperset(self.gates)

    @property
    def seen(self) -> Pod:
        """The pod's state in the words of scheduler and kubelet."""
        return self.facts.pods.get(self.name, Pod())

    def warned(self, name: str) -> str:
        """Return the last warning on an object, as the end of a sentence; "" where there is none."""
        event = self.facts.events.get(name)
        return f". Its last warning: {event}" if event else ""

    def noted(self, note: Note) -> Finding:
        """Return a notice of the controller as a finding."""
        cause = re.sub(r"(?<!^)(?=[A-Z])", "-", note.reason).lower()
        said = f"{note.message}; {note.detail}" if note.detail else note.message
        return (wrong if note.warning else waiting)(
            cause, said, note.next_step or self.on_job("describe")
        )

    def kubectl(self, *words: str) -> str:
        """Return a kubectl command for the job's namespace."""
        return " ".join(("kubectl", "-n", self.view.namespace, *words))

    def on_job(self, verb: str, *options: str) -> str:
        """Return a kubectl command on the job."""
        return self.kubectl(verb, "mpijob", self.view.name, *options)

    @property
    def describe(self) -> str:
        """The command that describes the pod."""
        return self.kubectl("describe pod", self.name)

    @property
    def controller_log(self) -> str:
        """The command that prints the controller's log."""
        return f"kubectl -n {self.facts.home} logs deployment/{names.CONTROLLER}"

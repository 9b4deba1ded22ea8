"""A job or a worker to explain, the facts that are known of it, and the findings.

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
from mpijob_elastic.diagnosis.logged_ranks import Spawned, Stall, Stopped
from mpijob_elastic.model.budgets import BudgetFacts
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import Launcher, Worker

# The suffix of a worker's finding when a finding on the job, printed above, says more.
ABOVE = " (see above)"


class Level(StrEnum):
    """The need to act on a finding."""

    #: As it should be.
    FINE = "fine"
    #: Resolves by itself.
    WAITING = "waiting"
    #: Somebody has to act.
    WRONG = "wrong"
    #: Nobody could look.
    UNKNOWN = "unknown"


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    """A cause that holds for a job or a worker."""

    #: The name of the cause, for programs.
    cause: str
    #: A sentence for people.
    says: str
    #: The command to type next; "" if no command helps.
    next_step: str = ""
    level: Level = Level.WRONG

    @property
    def alone(self) -> str:
        """The sentence without the reference to a finding above it."""
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
    """The cause that holds for a worker."""

    name: str
    #: The worker's host name in discover_hosts.sh; "" while the worker is not listed there.
    host: str
    #: True if the desired size includes the worker.
    wanted: bool
    cause: Finding


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every finding on a job and the finding on each worker."""

    namespace: str
    name: str
    #: The job's state, in one word.
    state: str
    #: The desired count of workers; None while it is not known.
    desired: int | None
    #: The count of wanted workers in which exec has shown a rank; None if it is not known.
    training: int | None
    #: True if every wanted worker trains, and nothing is wrong; None if that is not known.
    all_train: bool | None
    #: The reason why `training` or `all_train` is not known; "" if both are known.
    not_known: str
    #: The findings on the job.
    job: tuple[Finding, ...]
    #: The finding on each worker; empty if the job is over or not ours.
    workers: tuple[WorkerFinding, ...]
    #: The controller's notices.
    notices: list[str]


@dataclass(frozen=True, kw_only=True)
class Stuck:
    """A container that does not start or restarts again and again."""

    container: str
    #: The kubelet's reason and message.
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, kw_only=True)
class PodTrouble:
    """The state of a pod in the words of scheduler and kubelet."""

    #: The reason why no node takes the pod; "" once a node has taken it.
    unscheduled: str = ""
    stuck: Stuck | None = None
    #: The reason why the pod is not Ready.
    unready: str = ""
    #: `CONTAINER: REASON` of containers that ended, also before a restart.
    ended: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The result of an exec into a worker."""

    #: The names of the processes beside the worker's main process.
    processes: tuple[str, ...] = ()
    #: The reason why the exec failed; "" if it succeeded.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts on a job."""

    #: The job's state, in one word.
    state: str = ""
    created_at: float = 0.0
    #: The latest time at which the present size can have been set; 0 if nobody knows.
    resized_at: float = 0.0
    #: The state of each pod, by the pod's name.
    pods: Mapping[str, PodTrouble] = field(default_factory=dict)
    #: The newest warning on each object, by the object's name.
    events: Mapping[str, str] = field(default_factory=dict)
    #: The creation times of workers beyond the size, by the worker's name.
    surplus: Mapping[str, float] = field(default_factory=dict)
    #: The namespace of controller and webhook.
    home: str = names.NAMESPACE
    #: The reason why the controller does not work; "" if it works.
    controller: str = ""
    #: False only where neither controller nor webhook exists, which nobody can look into then.
    installed: bool = True
    #: The reason why the webhook does not work; "" if it works.
    webhook: str = ""
    #: The command that starts the ranks.
    launch: Launch | None = None
    #: True if the launcher's Role may be read.
    role_readable: bool = True
    #: The result of the exec into each worker, by the worker's name; empty with --no-exec.
    looks: Mapping[str, Look] = field(default_factory=dict)
    #: The missing ranks that the launcher's log names.
    stall: Stall | None = None
    #: The words of the launcher's log with which horovodrun has stopped.
    stopped: Stopped | None = None
    #: The processes that may hold the missing ranks.
    spawned: Spawned | None = None
    #: The rule of the job's templates that selects the pod only by labels that the webhook put back
    #: on it, in words, by the name of a pod that finds no node for such a rule.
    new_rules: Mapping[str, str] = field(default_factory=dict)
    #: The PodDisruptionBudgets of the namespace, if pods of the job only hold their place.
    budgets: tuple[BudgetFacts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job to explain, or a pod of the job."""

    state: JobState
    facts: Facts
    #: The next step of the host list.
    following: Next
    #: The name of the job, the worker or the launcher to explain.
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
        """The pod with the name `name`; None for the job as a whole."""
        return self.view.launcher if self.name == self.launcher else self.view.worker(self.name)

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates of the pod."""
        return self.pod.facts.gates if self.pod else ()

    @property
    def held_back(self) -> bool:
        """True if the pod is meant to wait: only gates of ours hold it back."""
        return bool(self.gates) and names.GATES.issuperset(self.gates)

    @property
    def seen(self) -> PodTrouble:
        """The pod's state in the words of scheduler and kubelet."""
        return self.facts.pods.get(self.name, PodTrouble())

    def warned(self, name: str) -> str:
        """Return the last warning on an object, as the end of a sentence; "" without a warning."""
        event = self.facts.events.get(name)
        return f". Its last warning: {event}" if event else ""

    def noted(self, note: Note) -> Finding:
        """Return a notice of the controller as a finding."""
        cause = re.sub(r"(?<!^)(?=[A-Z])", "-", note.reason).lower()
        said = "; ".join(filter(None, (note.exact or note.message, note.detail)))
        step = note.next_step or self.on_job("describe")
        adopt = names.adopt(self.view.name, self.view.namespace)
        if not self.facts.installed:
            said = said.replace(f"`{adopt}`", f"`{adopt}` (once mpijob-elastic is installed)")
            step = "" if step == adopt else step
        return (wrong if note.warning else waiting)(cause, said, step)

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
    def status(self) -> str:
        """The command that says what is wrong with an installation; "" without an installation."""
        return f"{names.PROGRAM} status -n {self.view.namespace}" if self.facts.installed else ""

    @property
    def controller_log(self) -> str:
        """The command that prints the controller's log; "" without an installation."""
        if not self.facts.installed:
            return ""
        return f"kubectl -n {self.facts.home} logs deployment/{names.CONTROLLER}"

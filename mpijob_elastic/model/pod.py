"""A pod of a job: its facts as decoded, what a controller knows of it besides, and by which taints it goes.

Times are seconds since the epoch. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.bounds import MOST_CONTAINERS
from mpijob_elastic.model.kubexec import Held
from mpijob_elastic.model.memory import Tries, pod_fingerprint, pod_key
from mpijob_elastic.model.wire import Owned, Wire

NO_EXECUTE = "NoExecute"
# https://kubernetes.io/docs/reference/labels-annotations-taints/: set by Kubernetes itself and by
# cloud providers.
_BUILT_IN = re.compile(r"node(?:\.cloudprovider)?\.kubernetes\.io/.*")


class Taint(Wire, frozen=True, gc=False):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Wire, frozen=True, gc=False):
    """A toleration of a pod. effect: "" means any; seconds: None means for ever."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = msgspec.field(default=None, name="tolerationSeconds")

    @property
    def may_last(self) -> bool:
        """True if a pod may stay for ever, and not only while Kubernetes reports its node as lost."""
        return (
            self.seconds is None and self.effect in ("", NO_EXECUTE) and not is_built_in(self.key)
        )

    def lasts_against(self, taint: Taint) -> bool:
        """Return True if a pod with this toleration stays in spite of the taint."""
        everything = not self.key and self.operator == "Exists"
        named = self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)
        return self.may_last and (everything or named)


def is_built_in(key: str) -> bool:
    """Return True if Kubernetes itself reports a node's state with that taint."""
    return _BUILT_IN.fullmatch(key) is not None


class Signs:
    """By what is told that a node is about to go; by default by nothing."""

    def names_taint(self, _key: str, _value: str, _effect: str) -> bool:
        """Return True if that taint means the node's end, whatever a pod tolerates."""
        return False

    def names_condition(self, _kind: str) -> bool:
        """Return True if a condition of that type does."""
        return False

    def evicts(self, _key: str, _effect: str) -> bool:
        """Return True if that taint makes pods leave that do not tolerate it."""
        return False


class LauncherPhase(Enum):
    """The progress of the launcher pod; STARTED once its main container has ever run."""

    WAITING = "waiting"
    DELIVERING = "delivering"  # the init container kubectl-delivery runs
    STARTED = "started"
    FINISHED = "finished"


NOT_STARTED = (LauncherPhase.WAITING, LauncherPhase.DELIVERING)

# Most pods have none, and share this.
NO_MARKS: Mapping[str, str] = {}


class PodFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod with the operator's labels.

    launcher_phase, mounts_discovery, names_discovery, refreshed, delivering_since, started_at,
    ended_at, failures, deadline: only for a launcher; ended_at: when it ended, None unless it did
    and the operator makes no other for it; failures: how often its driver's container has failed, 0
    while it runs. mounting: the containers that mount J-config; default_container: the one that an
    annotation names; neither for a pod of one. ready_at: None while it is not Ready. foreign: it is
    a worker of mpi-operator v0.3.0; of_training_operator: that operator made it. node: "" while it
    is not scheduled; obstacle: why not. node_gone_at: when that node was seen to be deleted, 0 if
    it was not. disruption: why pod or node is about to go, "" if they stay. tolerations: those that
    let it stay for ever in spite of a NoExecute taint. ends_at: end of its grace period, of `grace`
    seconds, both None unless it is being deleted. shares_processes: with other containers of the
    pod, or with its node. out_of_memory: a container was killed for it. pre_stop: a container has a
    preStop hook. gates: what holds it back from the scheduler. grouped: it starts with others, by a
    mark for their scheduler. marks: annotations of a worker that a capability reads. last_words: of
    the main process that our webhook gave it, once that has ended with its ranks.
    """

    metadata: Owned
    role: str
    phase: str
    created_at: float
    deleting: bool
    containers: tuple[str, ...]
    mounting: tuple[str, ...] = ()
    default_container: str = ""
    ready_at: float | None = None
    last_state: str = ""
    foreign: bool = False
    of_training_operator: bool = False
    launcher_phase: LauncherPhase = LauncherPhase.WAITING
    mounts_discovery: bool = False
    names_discovery: bool = False
    refreshed: str | None = None
    delivering_since: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    failures: int = 0
    deadline: int | None = None
    node: str = ""
    node_gone_at: float = 0.0
    obstacle: str = ""
    disruption: str = ""
    tolerations: tuple[Toleration, ...] = ()
    ends_at: float | None = None
    grace: int | None = None
    shares_processes: bool = False
    out_of_memory: bool = False
    pre_stop: bool = False
    gates: tuple[str, ...] = ()
    grouped: bool = False
    marks: Mapping[str, str] = NO_MARKS
    last_words: str = ""

    @property
    def forced(self) -> bool:
        """True if it is being deleted without a grace period, so only a finalizer holds it."""
        return self.grace == 0

    @property
    def held_back(self) -> bool:
        """True if a gate of ours keeps it from the scheduler, whatever for."""
        return not names.GATES.isdisjoint(self.gates)

    def rank_containers(self, named: str | None, *, main: str) -> tuple[str, ...]:
        """Return each container of a worker in which ranks may be started.

        named: by kubexec.sh (kubexec.container). main: spec.mainContainer, with which the operator
        wrote the script once. `mounting` are the containers with the job's ConfigMap,
        `default_container` the annotation's. Kubectl follows the pod's annotation since v1.21;
        kubectl-delivery v0.2.3 has v1.15 and takes the first.
        """
        if named in self.containers:
            return (named,)
        if named == "" and self.default_container not in self.containers:
            return self.containers[:1]
        possible = {*self.mounting, self.default_container, main}
        return tuple(name for name in self.containers if name in possible) or self.containers[:1]


def of_driver(containers: tuple[str, ...], *, mounting: tuple[str, ...]) -> str:
    """Return the launcher's container with kubectl and kubexec.sh.

    [operator] A template's first container gets the mount of J-config. A sidecar injector may put
    another before it, as Istio's holdApplicationUntilProxyStarts does; it has no such mount.
    """
    return next(
        (name for name in containers if name in mounting), containers[0] if containers else ""
    )


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The result of execs into a worker, since it left the host list or got the host name that it has there.

    busy_seen: something besides its main process ran there at least once; busy_at: when last, 0 if
    never. idle_at: when last nothing ran, None if never or if something ran later; idle_since: when
    that began. asked_at: time of the last exec, whatever its result. failed: how many execs in a
    row gave no answer. left: its main process has seen the last rank leave, and has ended. told: it
    was told that the worker has drained.
    """

    busy_seen: bool = False
    idle_at: float | None = None
    asked_at: float = 0.0
    busy_at: float = 0.0
    idle_since: float | None = None
    failed: int = 0
    left: bool = False
    told: bool = False


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker pod of this MPIJob. containers: those that may hold ranks. probe: what execs into it have shown."""

    facts: PodFacts
    index: int
    containers: tuple[str, ...]
    probe: Probe = field(default_factory=Probe)

    @cached_property
    def ref(self) -> Identity:
        """The pod at this version: the precondition of every write."""
        return self.facts.metadata

    @cached_property
    def name(self) -> str:
        """The pod's name; its host name may also have a number (names.host)."""
        return self.facts.metadata.name

    @cached_property
    def fingerprint(self) -> str:
        """Short form of the uid, as the memory keeps it."""
        return pod_fingerprint(self.facts.metadata.uid)

    @cached_property
    def key(self) -> str:
        """Key of the pod; it can be told from the memory too, after the pod is gone."""
        return pod_key(self.name, self.fingerprint)

    @cached_property
    def running(self) -> bool:
        """True if its containers run."""
        return self.facts.phase == "Running"

    @cached_property
    def ready(self) -> bool:
        """True if a rank may be started in it."""
        return (
            self.facts.phase == "Running"
            and self.facts.ready_at is not None
            and not self.facts.deleting
        )

    @cached_property
    def terminated(self) -> bool:
        """True if nothing runs in it any more."""
        return self.facts.phase in ("Failed", "Succeeded")

    @cached_property
    def opaque(self) -> bool:
        """True if exec cannot tell whether ranks run: process numbers are shared with others, or containers many."""
        return self.facts.shares_processes or len(self.containers) > MOST_CONTAINERS

    @cached_property
    def unscheduled(self) -> bool:
        """True if no node has taken it, so that none of its containers has ever run."""
        return not (self.facts.node or self.running or self.terminated)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Touches of the launcher for one change (`Config.digest`) that the API server refused in a row, and its reason."""

    change: str
    tries: Tries
    reason: str


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """The launcher pod. container: the driver's. ended_at: when it ended, None unless it did, and the job with it.

    held: its execs that hold ranks, as execs into it have shown. refused: None unless its last
    touch was refused.
    """

    facts: PodFacts
    container: str = ""
    ended_at: float | None = None
    held: Held = field(default_factory=Held)
    refused: Refusal | None = None

    @cached_property
    def ref(self) -> Identity:
        """The pod at this version: the precondition of every write."""
        return self.facts.metadata

    @cached_property
    def phase(self) -> LauncherPhase:
        """Its progress."""
        return self.facts.launcher_phase

"""A pod of a job: its decoded facts, what the controller adds to them, and taints that end it.

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
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.bounds import MOST_CONTAINERS
from mpijob_elastic.model.json_parts import Owned, Wire
from mpijob_elastic.model.kubexec import HeldExecs
from mpijob_elastic.model.memory import Tries, pod_fingerprint, pod_key
from mpijob_elastic.model.progress import ProgressLine

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
    """A toleration of a pod."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    #: "" means any effect.
    effect: str = ""
    #: None means for ever.
    seconds: int | None = msgspec.field(default=None, name="tolerationSeconds")

    @property
    def may_last(self) -> bool:
        """True if the toleration may let a pod stay for ever.

        Tolerations of Kubernetes' own taints do not count: they only let a pod stay while its node
        is reported as lost.
        """
        if self.seconds is not None or self.effect not in ("", NO_EXECUTE):
            return False
        return not is_built_in(self.key)

    def lasts_against(self, taint: Taint) -> bool:
        """Return True if a pod with this toleration stays in spite of the taint."""
        if not self.may_last:
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


def is_built_in(key: str) -> bool:
    """Return True if Kubernetes itself reports a node's state with that taint."""
    return _BUILT_IN.fullmatch(key) is not None


class LauncherPhase(Enum):
    """The progress of the launcher pod; STARTED once its main container has ever run."""

    WAITING = "waiting"
    DELIVERING = "delivering"  # the init container kubectl-delivery runs
    STARTED = "started"
    LINGERING = "lingering"  # the driver has ended for good, and another container still runs
    FINISHED = "finished"


NOT_STARTED = (LauncherPhase.WAITING, LauncherPhase.DELIVERING)
DRIVER_ENDED = (LauncherPhase.LINGERING, LauncherPhase.FINISHED)

# The phases of a pod of which nothing runs any more.
_ENDED = ("Failed", "Succeeded")

# Most pods have no marks, and share this mapping.
NO_MARKS: Mapping[str, str] = {}


class PodFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod with the operator's labels."""

    metadata: Owned
    #: The value of label `names.LABEL_JOB_ROLE`; "" if absent.
    role: str
    #: `status.phase`.
    phase: str
    created_at: float
    #: True once its deletion was requested.
    deleting: bool
    #: Names of the containers, without init containers.
    containers: tuple[str, ...]
    #: The containers that mount the job's ConfigMap; () for a pod with a single container.
    mounting: tuple[str, ...] = ()
    #: The container that annotation `names.DEFAULT_CONTAINER` names; "" for a pod with a single
    #: container.
    default_container: str = ""
    #: Since when it is Ready; None while it is not.
    ready_at: float | None = None
    #: When it got its node or was Ready last, whichever is later; 0 if neither is known, and while
    #: it is Ready.
    unready_at: float = 0.0
    #: When it got its node; 0 while it has none.
    bound_at: float = 0.0
    #: Its state or end, and its node, in words; "" for a pod that was never scheduled.
    last_state: str = ""
    #: True for a worker of mpi-operator v0.3.0.
    foreign: bool = False
    #: True if training-operator made the pod.
    of_training_operator: bool = False
    #: "" while it is not scheduled.
    node: str = ""
    #: When its node was seen to be deleted; 0 if it was not.
    node_gone_at: float = 0.0
    #: Why it is not scheduled.
    obstacle: str = ""
    #: Why the pod or its node is about to go, perhaps later; "" if they stay.
    disruption: str = ""
    #: From when that counts; 0 if it counts at once.
    disruption_from: float = 0.0
    #: The pod may leave after others: its node does not go at a set time.
    can_wait: bool = False
    #: A resource of its own that its kubelet reports as Unhealthy, such as a GPU; "" without one.
    unhealthy: str = ""
    #: The tolerations that let it stay for ever in spite of a NoExecute taint.
    tolerations: tuple[Toleration, ...] = ()
    #: End of its grace period; None unless it is being deleted.
    ends_at: float | None = None
    #: Seconds of its grace period; None unless it is being deleted.
    grace: int | None = None
    #: True if its containers share processes with each other or with the node.
    shares_processes: bool = False
    #: True if a container was killed because it ran out of memory.
    out_of_memory: bool = False
    #: True if a container has a preStop hook.
    pre_stop: bool = False
    #: The containers in which the kubelet runs commands as long as they live.
    probed_containers: tuple[str, ...] = ()
    #: The scheduling gates that hold it back from the scheduler.
    gates: tuple[str, ...] = ()
    #: True if a mark for the scheduler says that it starts together with other pods.
    grouped: bool = False
    #: The annotations that a capability reads.
    marks: Mapping[str, str] = NO_MARKS
    #: The last words of the main process from our webhook, once it has ended with its ranks.
    last_words: str = ""

    def going(self, *, now: float) -> str:
        """Return why the pod or its node is about to go; "" if they stay, or go later."""
        if self.disruption_from > now:
            return ""
        return self.disruption

    @property
    def forced(self) -> bool:
        """True if it is being deleted without a grace period, so only a finalizer holds it."""
        return self.grace == 0

    @property
    def held_back(self) -> bool:
        """True if a gate of ours keeps it from the scheduler, for whatever reason."""
        return not names.GATES.isdisjoint(self.gates)

    @property
    def idle(self) -> bool:
        """True if it holds nothing: it waits at a gate, or it has ended.

        A finalizer may keep a pod that has ended for as long as it likes.
        """
        return self.gates != () or self.phase in _ENDED

    def rank_containers(self, named: str | None, *, main: str) -> tuple[str, ...]:
        """Return each container of a worker in which ranks may be started.

        named: the container that kubexec.sh names (kubexec.container). main: spec.mainContainer,
        with which the operator wrote the script once. Kubectl follows the pod's annotation
        (`default_container`) since v1.21; kubectl-delivery v0.2.3 has v1.15 and takes the first
        container.
        """
        if named in self.containers:
            return (named,)
        if named == "" and self.default_container not in self.containers:
            return self.containers[:1]
        possible = {*self.mounting, self.default_container, main}
        return tuple(name for name in self.containers if name in possible) or self.containers[:1]


class LauncherFacts(PodFacts, frozen=True, kw_only=True, gc=False):
    """A launcher pod with the operator's labels."""

    #: Its progress.
    launcher_phase: LauncherPhase = LauncherPhase.WAITING
    #: True if it was created to read the host list.
    mounts_discovery: bool = False
    #: True if its containers name discover_hosts.sh or the option for it.
    names_discovery: bool = False
    #: True if it was created with elastic.sh, which is then its driver.
    mounts_elastic: bool = False
    #: The value of annotation `names.REFRESHED`, by which it was last touched.
    refreshed: str | None = None
    #: Since when the init container kubectl-delivery runs.
    delivering_since: float | None = None
    #: Since when the driver's container runs; None while it does not.
    started_at: float | None = None
    #: When it ended; None unless it did and the operator makes no other launcher for it.
    ended_at: float | None = None
    #: The containers that still run although the driver has ended.
    lingering: tuple[str, ...] = ()
    #: How often the driver's container has failed; 0 while it runs.
    failures: int = 0
    #: `spec.activeDeadlineSeconds`.
    deadline: int | None = None


def as_launcher(pod: PodFacts) -> LauncherFacts:
    """Return the facts of a launcher; of a pod without its role no more is known."""
    if isinstance(pod, LauncherFacts):
        return pod
    return LauncherFacts(**msgspec.structs.asdict(pod))


def of_driver(containers: tuple[str, ...], *, mounting: tuple[str, ...]) -> str:
    """Return the launcher's container with kubectl and kubexec.sh.

    [operator] A template's first container gets the mount of J-config. A sidecar injector may put
    another before it, as Istio's holdApplicationUntilProxyStarts does; it has no such mount.
    """
    first = containers[0] if containers else ""
    return next((name for name in containers if name in mounting), first)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The result of execs into a worker, since it left the host list or got its present host name.

    Busy means that something besides the main process ran in the worker, idle that nothing did.
    """

    #: True if the worker was seen busy at least once.
    busy_seen: bool = False
    #: True if that may have been a command of the kubelet, such as an exec probe.
    in_doubt: bool = False
    #: When it was last seen idle; None if never, or if it was seen busy later.
    idle_at: float | None = None
    #: Time of the last exec, whatever its result; 0 if there was none.
    asked_at: float = 0.0
    #: When it was last seen busy; 0 if never.
    busy_at: float = 0.0
    #: The first of the looks that saw it busy in a row, up to `busy_at`; None if never.
    busy_since: float | None = None
    #: When the idle time that `idle_at` is part of was first seen; None as there.
    idle_since: float | None = None
    #: Number of execs in a row that gave no answer.
    failed: int = 0
    #: True if its main process has seen the last rank leave, and has ended.
    left: bool = False
    #: True once an exec has told its main process that the worker has drained.
    told: bool = False
    #: The last line of progress that an exec has read; None without one.
    progress: ProgressLine | None = None

    @cached_property
    def rank_seen(self) -> bool:
        """True if a rank was surely seen at least once."""
        return self.busy_seen and not self.in_doubt

    @property
    def was_answered(self) -> bool:
        """True if an exec has told whether something ran."""
        return self.busy_seen or self.idle_at is not None

    def missed_since(self, after: float, *, lasting: float) -> float | None:
        """Return when a rank was first missed.

        None unless looks had seen one for `lasting` seconds before, all of them past `after`.
        """
        if self.seen_for(after) < lasting:
            return None
        return self.idle_since

    def seen_for(self, after: float) -> float:
        """Return for how many seconds past `after` looks in a row saw a rank, up to the last."""
        if self.busy_since is None:
            return 0.0
        return self.busy_at - max(self.busy_since, after)


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker pod of this MPIJob."""

    facts: PodFacts
    #: The number in its name.
    index: int
    #: The containers that may hold ranks.
    containers: tuple[str, ...]
    #: What execs into the worker have shown.
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
        """Key of the pod; after the pod is gone, the memory still gives it."""
        return pod_key(self.name, self.fingerprint)

    @cached_property
    def running(self) -> bool:
        """True if its containers run."""
        return self.facts.phase == "Running"

    @cached_property
    def ready(self) -> bool:
        """True if a rank may be started in it."""
        if self.facts.phase != "Running" or self.facts.deleting:
            return False
        return self.facts.ready_at is not None

    @property
    def unready_since(self) -> float:
        """Since when it is not Ready, if it is not.

        A pod that was never Ready counts from its creation, or from the time at which it got a
        node: what held it back before, such as a queue, is over.
        """
        return max(self.facts.created_at, self.facts.unready_at)

    @cached_property
    def terminated(self) -> bool:
        """True if nothing runs in it any more."""
        return self.facts.phase in _ENDED

    @cached_property
    def opaque(self) -> bool:
        """True if exec cannot tell whether ranks run.

        Its containers share their processes, or are too many.
        """
        return self.facts.shares_processes or len(self.containers) > MOST_CONTAINERS

    @property
    def runs_commands(self) -> bool:
        """True if the kubelet runs commands in a container that may hold ranks."""
        return not frozenset(self.facts.probed_containers).isdisjoint(self.containers)

    @cached_property
    def unscheduled(self) -> bool:
        """True if no node has taken the pod, so that none of its containers has ever run."""
        return not (self.facts.node or self.running or self.terminated)


@dataclass(frozen=True, kw_only=True)
class RefusedTouch:
    """Touches of the launcher for one change that the API server refused in a row."""

    #: The change that they were to show (`Config.digest`).
    change: str
    tries: Tries
    #: Why the API server refused the last touch.
    reason: str


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """The launcher pod."""

    facts: LauncherFacts
    #: The driver's container.
    container: str = ""
    #: When it ended; None unless the job ended with it.
    ended_at: float | None = None
    #: Its execs that hold ranks, as our own execs into it have shown.
    held: HeldExecs = field(default_factory=HeldExecs)
    #: The acknowledgement of its driver, as our own looks into it have shown.
    acknowledged: Acknowledgement = field(default_factory=Acknowledgement)
    #: None unless its last touch was refused.
    refused: RefusedTouch | None = None

    @cached_property
    def ref(self) -> Identity:
        """The pod at this version: the precondition of every write."""
        return self.facts.metadata

    @property
    def elastic(self) -> bool:
        """True if its driver reads the host list, or got it at the creation of the pod."""
        return self.facts.mounts_discovery or self.facts.names_discovery

    @cached_property
    def phase(self) -> LauncherPhase:
        """Its progress."""
        return self.facts.launcher_phase

"""The view of a job: the only input of a decision, immutable, built by observe.views.

Times are seconds since the epoch.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from mpijob_elastic import names
from mpijob_elastic.model.autoscale import Autoscaler
from mpijob_elastic.model.bounds import FEWEST_EXECS, MOST_EXECS, MOST_WORKERS
from mpijob_elastic.model.eviction import Eviction
from mpijob_elastic.model.execs import Held
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.hosts import Published
from mpijob_elastic.model.kube_queue import KubeQueue
from mpijob_elastic.model.kubexec import is_mapped, mapped
from mpijob_elastic.model.memory import Memory, Tries, pod_fingerprint, pod_key
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.queue import Queue


def script_fingerprint(script: str) -> str:
    """Return a short form of discover_hosts.sh for `Memory.script`."""
    return hashlib.sha256(script.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class Ref:
    """An object at one version: the precondition of every write."""

    name: str
    uid: str
    resource_version: str

    @cached_property
    def fingerprint(self) -> str:
        """Short form of the uid, as the memory keeps it."""
        return pod_fingerprint(self.uid)

    @property
    def key(self) -> str:
        """Key of a pod; it can be told from the memory too, after the pod is gone."""
        return pod_key(self.name, self.fingerprint)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The result of execs into a worker, since it left the host list or got the host name that it has there.

    busy_seen: something besides its main process ran there at least once; busy_at: when last, 0 if never.
    idle_at: when last nothing ran, None if never or if something ran later; idle_since: when that began.
    asked_at: time of the last exec, whatever its result. failed: how many execs in a row gave no answer.
    left: its main process has seen the last rank leave, and has ended. told: it was told that the worker has drained.
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
    """A worker pod owned by this MPIJob.

    terminated: its phase is Failed or Succeeded, so nothing runs in it. last_state: exit code, reason and node in
    words, for the Event that outlives the pod. ready_at: None while it is not Ready. node: "" while it is not
    scheduled. node_gone_at: when that node was seen to be deleted, 0 if it was not. obstacle: why it is not scheduled,
    in the scheduler's words. disruption: why pod or node is about to go, "" if they stay. out_of_memory: a container
    was killed for it. ends_at: end of its grace period, None unless it is being deleted; forced: it is being deleted
    without any, so only a finalizer holds it. containers: those that may hold ranks. opaque: a container shares process
    numbers with others, or they are many, so exec cannot tell whether ranks run. pre_stop: a container has a preStop
    hook. gates: names of the scheduling gates that hold it back, in order. grouped: it has the mark of a gang.
    eviction: None unless somebody tries to evict it.
    """

    ref: Ref
    index: int
    containers: tuple[str, ...]
    created_at: float
    running: bool = False
    ready_at: float | None = None
    deleting: bool = False
    terminated: bool = False
    succeeded: bool = False
    last_state: str = ""
    node: str = ""
    node_gone_at: float = 0.0
    obstacle: str = ""
    disruption: str = ""
    out_of_memory: bool = False
    ends_at: float | None = None
    forced: bool = False
    opaque: bool = False
    pre_stop: bool = False
    gates: tuple[str, ...] = ()
    grouped: bool = True
    eviction: Eviction | None = None
    probe: Probe = field(default_factory=Probe)

    @property
    def name(self) -> str:
        """The pod's name; its host name may also have a number (names.host)."""
        return self.ref.name

    @property
    def ready(self) -> bool:
        """True if a rank may be started in it."""
        return self.running and self.ready_at is not None and not self.deleting

    @property
    def unscheduled(self) -> bool:
        """True if no node has taken it, so that none of its containers has ever run."""
        return not (self.node or self.running or self.terminated)


class LauncherPhase(Enum):
    """The progress of the launcher pod; STARTED once its main container has ever run."""

    WAITING = "waiting"
    DELIVERING = "delivering"  # the init container kubectl-delivery runs
    STARTED = "started"
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Touches of the launcher for one change that the API server refused in a row: the count, the last, and why.

    change: `Config.digest`. reason: in the words of the API server.
    """

    change: str
    tries: Tries
    reason: str


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """The launcher pod; node, disruption, ends_at and gates as for a worker.

    container: the driver's. delivering_since: when kubectl-delivery started. started_at: when the container started,
    None while it does not run. ended_at: when it ended, None unless it did, and the job with it.
    held: the execs by which it holds its ranks, as execs into it have shown. mounts_discovery: it mounts
    discover_hosts.sh, so it was elastic at its creation. names_discovery: its own command says that it is elastic.
    refused: None unless its last touch was refused. grouped: as for a worker. failures: how often its main container
    has failed, 0 while it runs. deadline: its activeDeadlineSeconds.
    """

    ref: Ref
    phase: LauncherPhase
    mounts_discovery: bool
    names_discovery: bool = False
    created_at: float
    container: str = ""
    delivering_since: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    refreshed: str | None = None
    deleting: bool = False
    node: str = ""
    disruption: str = ""
    ends_at: float | None = None
    gates: tuple[str, ...] = ()
    held: Held = field(default_factory=Held)
    refused: Refusal | None = None
    grouped: bool = True
    failures: int = 0
    deadline: int | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """The operator's ConfigMap. published: None if discover_hosts.sh is absent or not as we write it.

    kubexec: the script by which the launcher reaches workers, None if absent. writer: field manager that last changed
    discover_hosts.sh, "" if unknown; written_at: its last write, 0 if unknown.
    """

    ref: Ref
    published: Published | None
    script: str | None
    hostfile: str
    memory: Memory | None
    kubexec: str | None = None
    writer: str = ""
    written_at: float = 0.0

    @cached_property
    def signed(self) -> bool:
        """True if discover_hosts.sh is the script that our memory was written with."""
        return self.memory is not None and self.memory.script == self.fingerprint

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """Host names in discover_hosts.sh by pod, in its order."""
        return {names.pod_of(host): host for host in self.published.hosts} if self.published else {}

    @cached_property
    def finds_numbered(self) -> bool:
        """True if the launcher finds the pod of a numbered host name, or will with our line in kubexec.sh."""
        return mapped(self.kubexec) is not None

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of this discover_hosts.sh in the memory written with it."""
        return script_fingerprint(self.script or "")

    @cached_property
    def digest(self) -> str:
        """A name for this change of the launcher's mounted files.

        It includes the times, because an earlier change may have led to the same hosts.
        """
        memory = self.memory or Memory()
        content = [self.script, self.hostfile, str(memory.added_at), str(memory.removed_at)]
        if is_mapped(self.kubexec):
            content.append(self.kubexec)
        return hashlib.sha256("\0".join(part or "" for part in content).encode()).hexdigest()[:16]

    def occasion(self, pod: str) -> str:
        """Return the start of a worker's current probes: its host name in the list, or its leaving; "" for neither.

        Earlier probes do not count: a published worker does not drain, and a new host name starts a new rank.
        """
        left = self.memory.left.get(pod) if self.memory else None
        return f"left at {left.at}" if left else self.host_of.get(pod, "")


@dataclass(frozen=True, kw_only=True)
class Role:
    """The launcher's Role. exec_rule: index of the rule on pods/exec, whose resourceNames are `exec_names`."""

    ref: Ref
    exec_rule: int
    exec_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PodGroup:
    """The job's PodGroup: its pods are scheduled once `min_member` of them fit. annotations: of the task topology."""

    ref: Ref
    min_member: int
    queue: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job and its objects.

    size_known: its MPIJob says how many workers it wants; otherwise `replicas` covers those that are there.
    spec_elastic: its MPIJob asks for elasticity, see `elastic`. workers: in numeric order. foreign: why it is not ours
    to manage, "" if it is. foreign_at: last sign of life of the operator that manages it; infinite if its silence means
    nothing. reported: the operator has written the job's status. finished: Succeeded, or Failed for good. ended_at:
    by the operator's clock, None unless it has finished; succeeded_at: the same of a success. ttl: seconds after which
    it is then deleted, None for never. backoff_limit: how often a launcher that fails is restarted. suspended_by: field
    or annotation that suspends it, "" if none does. notices: our annotation on it. refused: what the API server refuses
    to write, by the kind of the action: what to say of it, "" until it has been refused often.
    np_workers: workers that horovodrun waits for at its start (-np). min_np_workers, max_np_workers: below the first
    number training waits, above the second no more ranks start. 0 where the command does not say. counts_resets:
    horovodrun ends the job after so many resets. gloo_timeout: seconds until Gloo gives up a peer, 0 for the default.
    former: probes of pods that left the host list and are gone, by name.
    drains_seen: for how many seconds the process that decides has seen each drain (by pod, and when it began), by a
    clock that never steps; a drain that is missing is new. The same for each `missing` pod, as if that had begun at 0.
    None: nobody measures, as in the command line.
    list_seen: the same for the last change of the host list and the touch that shows it. None: longer than anything
    waits for it, or nobody measures.
    gang: what it asks of a gang scheduler, None without. serves_gangs: the API serves PodGroups; None: not known.
    selector_due: the MPIJob definition keeps a selector of the workers, and the status lacks it.
    autoscalers: all HPAs that scale it; None while they are not known. size_manager: GitOps tool that sets its size.
    others_wait: when the pods were created that other jobs need and no node takes, and that could run in place of its
    workers; kept for a job that fills.
    queue: what Kueue says; None while it is not known whether there is a Kueue, as in the command line.
    kube_queue: what KubeQueue says; None where it is not installed, and for a job that it neither holds nor has queued.
    """

    namespace: str
    ref: Ref
    replicas: int
    slots: int
    spec_elastic: bool
    size_known: bool = True
    np_workers: int = 0
    min_np_workers: int = 0
    max_np_workers: int = 0
    counts_resets: bool = False
    gloo_timeout: int = 0
    policy: Policy = field(default_factory=Policy)
    problems: tuple[Problem, ...] = ()
    clean_pod_policy: str = "None"
    deleting: bool = False
    reported: bool = True
    finished: bool = False
    suspended_by: str = ""
    succeeded_at: float | None = None
    ended_at: float | None = None
    ttl: int | None = None
    backoff_limit: int | None = None
    foreign: str = ""
    foreign_at: float = math.inf
    notices: str = ""
    refused: Mapping[type, str] = field(default_factory=dict)
    selector_due: bool = False
    workers: tuple[Worker, ...] = ()
    former: Mapping[str, Probe] = field(default_factory=dict)
    drains_seen: Mapping[tuple[str, float], float] | None = None
    list_seen: float | None = None
    launcher: Launcher | None = None
    config: Config | None = None
    role: Role | None = None
    gang: Gang | None = None
    serves_gangs: bool | None = None
    pod_group: PodGroup | None = None
    queue: Queue | None = None
    kube_queue: KubeQueue | None = None
    autoscalers: tuple[Autoscaler, ...] | None = None
    size_manager: str = ""
    others_wait: tuple[float, ...] = ()

    def queued(self, queue: Queue | None) -> "JobView":
        """Return the view with what Kueue says: it suspends an elastic job whose quota it wants back."""
        why = queue.suspends(self.name) if queue and queue.workloads and self.spec_elastic else ""
        return replace(self, queue=queue, suspended_by=self.suspended_by or why)

    @property
    def name(self) -> str:
        """The job's name."""
        return self.ref.name

    @cached_property
    def elastic(self) -> bool:
        """True if the job can change its size now: its MPIJob decides, and once a driver has started, its launcher.

        A launcher names discover_hosts.sh, or got it at its creation, so an edit of the template or of `enabled` is for
        the next launcher. Only `enabled: "false"` holds at once.
        """
        launcher = self.launcher
        if launcher is None or launcher.phase not in (LauncherPhase.STARTED, LauncherPhase.FINISHED):
            return self.spec_elastic
        return self.policy.enabled is not False and (launcher.mounts_discovery or launcher.names_discovery)

    @cached_property
    def stopped(self) -> bool:
        """True if no worker may run because the job is suspended, or was when its launcher was created."""
        if self.launcher is None:
            return bool(self.suspended_by)
        gates = self.launcher.gates
        return names.GATE_SUSPENDED in gates or (bool(self.suspended_by) and names.GATE_QUEUED in gates)

    @property
    def pods(self) -> tuple["Launcher | Worker", ...]:
        """The launcher, if there is one, and the workers."""
        return (self.launcher, *self.workers) if self.launcher else self.workers

    @cached_property
    def ended(self) -> bool:
        """True if no driver runs any more: the job has finished, or its launcher has."""
        return self.finished or (self.launcher is not None and self.launcher.phase is LauncherPhase.FINISHED)

    @property
    def over_at(self) -> float | None:
        """When it ended for good, by its status or, while the operator has not written that, by its launcher."""
        if self.finished or self.launcher is None or self.launcher.deleting:
            return self.ended_at
        return self.launcher.ended_at

    @property
    def gated(self) -> bool:
        """True if a pod has scheduling gates."""
        for worker in self.workers:
            if worker.gates:
                return True
        return self.launcher is not None and self.launcher.gates != ()

    @property
    def blind(self) -> bool:
        """True if elasticity is asked for, and the driver that runs cannot see the host list."""
        asked = self.spec_elastic or self.elastic
        return asked and self.driver_running and self.launcher is not None and not self.launcher.mounts_discovery

    @cached_property
    def handed_over(self) -> bool:
        """True if our annotation says that we left the job to another operator."""
        return names.is_handed_over(self.notices)

    @cached_property
    def driver_running(self) -> bool:
        """True if horovodrun may be reading discover_hosts.sh now."""
        return self.launcher is not None and self.launcher.phase is LauncherPhase.STARTED

    @cached_property
    def driver_may_run(self) -> bool:
        """True if horovodrun runs or may start at any moment: a pod's status lags behind its node."""
        launcher = self.launcher
        return launcher is not None and launcher.phase is not LauncherPhase.FINISHED and not launcher.gates

    @cached_property
    def published_pods(self) -> tuple[str, ...]:
        """The pods in discover_hosts.sh, in its order; for their host names see `host_of`."""
        return tuple(self.host_of)

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """Host names in discover_hosts.sh by pod, in its order."""
        return self.config.host_of if self.config else {}

    @cached_property
    def memory(self) -> Memory:
        """The memory; empty if there is none."""
        memory = self.config.memory if self.config else None
        return memory or Memory()

    @property
    def most_execs(self) -> int:
        """Bound on the execs of the launcher: for each rank one that runs, and one that may outlive its pod."""
        workers = max(self.replicas, len(self.workers), len(self.role.exec_names) if self.role else 0)
        return min(max(FEWEST_EXECS, 2 * self.slots * workers), MOST_EXECS)

    def worker(self, name: str) -> Worker | None:
        """Return the worker pod of that name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Worker]:
        return {worker.name: worker for worker in self.workers}

    @cached_property
    def wanted_names(self) -> tuple[str, ...]:
        """Names of the workers that the size asks for."""
        return tuple(names.worker(self.name, index) for index in range(min(self.replicas, MOST_WORKERS)))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Names of the pods that the operator has yet to create: wanted workers, and after them the launcher."""
        launcher = () if self.launcher else (names.launcher(self.name),)
        return (*(name for name in self.wanted_names if name not in self._by_name), *launcher)

    @cached_property
    def surplus(self) -> tuple[Worker, ...]:
        """Workers beyond the size, highest index first: the order in which they leave."""
        return tuple(worker for worker in reversed(self.workers) if worker.index >= self.replicas)

"""One immutable view of one job: everything a decision may look at, and nothing else.

Built by observe.views from the caches; times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from mpijob_elastic import names
from mpijob_elastic.model.execs import Held
from mpijob_elastic.model.hosts import Published
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy, Problem

# A ConfigMap and a Role hold 1 MiB each: a size beyond this is a typing error that must not become a billion names.
MOST_WORKERS = 10_000


@dataclass(frozen=True, kw_only=True)
class Ref:
    """Which object, at which version: the precondition of every write."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What exec into a leaving worker has shown since it left the host list.

    busy_seen: something besides its main process ran there at least once since then.
    idle_at: when last nothing did, None if never or if something ran again after that.
    asked_at: when last asked, whatever the answer.
    """

    busy_seen: bool = False
    idle_at: float | None = None
    asked_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker pod owned by this MPIJob.

    terminated: its phase is Failed or Succeeded, so nothing runs in it. succeeded: it ended well. last_state: exit
    code, reason and node in words, for the Event that outlives the pod. ready_at: when it became Ready, None while it
    is not. node: where it runs, "" while it is not scheduled. obstacle: why not, in the scheduler's words. disruption:
    why pod or node is about to go, "" where nobody said so.
    """

    ref: Ref
    index: int
    container: str
    created_at: float
    running: bool = False
    ready_at: float | None = None
    deleting: bool = False
    terminated: bool = False
    succeeded: bool = False
    last_state: str = ""
    node: str = ""
    obstacle: str = ""
    disruption: str = ""
    probe: Probe = field(default_factory=Probe)

    @property
    def name(self) -> str:
        """The pod's name; the host's may have a number more (names.host)."""
        return self.ref.name

    @property
    def ready(self) -> bool:
        """Whether a rank may be started in it."""
        return self.running and self.ready_at is not None and not self.deleting


class LauncherPhase(Enum):
    """How far the launcher pod is; what matters is whether its main container has ever started."""

    WAITING = "waiting"
    DELIVERING = "delivering"  # the init container kubectl-delivery runs
    STARTED = "started"
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """The launcher pod; `delivering_since` is when kubectl-delivery started; node, disruption: as of a worker.

    held: what exec has shown of the execs by which it holds its ranks.
    """

    ref: Ref
    phase: LauncherPhase
    mounts_discovery: bool
    created_at: float
    container: str = ""
    delivering_since: float | None = None
    refreshed: str | None = None
    deleting: bool = False
    node: str = ""
    disruption: str = ""
    held: Held = field(default_factory=Held)


@dataclass(frozen=True, kw_only=True)
class Config:
    """The operator's ConfigMap. published: None where discover_hosts.sh is absent or not as we write it.

    kubexec: by what the launcher reaches a worker, None where it is absent.
    """

    ref: Ref
    published: Published | None
    script: str | None
    hostfile: str
    memory: Memory | None
    kubexec: str | None = None


@dataclass(frozen=True, kw_only=True)
class Role:
    """The launcher's Role. exec_rule: index of the rule on pods/exec, whose resourceNames are `exec_names`."""

    ref: Ref
    exec_rule: int
    exec_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PodGroup:
    """The job's PodGroup: its pods are scheduled once `min_member` of them can be."""

    ref: Ref
    min_member: int


@dataclass(frozen=True, kw_only=True)
class JobView:
    """The job and what belongs to it.

    workers: in numeric order. foreign: why it is not ours to manage, "" where it is. reported: the operator has
    written the job's status. finished: Succeeded, or Failed for good. succeeded_at: when, by the operator's clock, None
    unless it did. notices: what our annotation on it says now.
    fewest: workers below which horovodrun's own options make training wait, 0 where they do not say.
    selector_due: the MPIJob definition keeps a selector of the workers, and the status that it belongs to has none.
    """

    namespace: str
    ref: Ref
    replicas: int
    slots: int
    elastic: bool
    fewest: int = 0
    policy: Policy = field(default_factory=Policy)
    problems: tuple[Problem, ...] = ()
    clean_pod_policy: str = "None"
    deleting: bool = False
    reported: bool = True
    finished: bool = False
    succeeded_at: float | None = None
    foreign: str = ""
    notices: str = ""
    selector_due: bool = False
    workers: tuple[Worker, ...] = ()
    launcher: Launcher | None = None
    config: Config | None = None
    role: Role | None = None
    pod_group: PodGroup | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.ref.name

    @property
    def handed_over(self) -> bool:
        """Whether our annotation on it says that we gave way to somebody else."""
        return names.is_handed_over(self.notices)

    @property
    def driver_running(self) -> bool:
        """Whether horovodrun may be reading discover_hosts.sh now."""
        return self.launcher is not None and self.launcher.phase is LauncherPhase.STARTED

    @property
    def driver_may_run(self) -> bool:
        """Whether horovodrun runs, or may start at any moment: a pod's status is behind what happens on its node."""
        return self.launcher is not None and self.launcher.phase is not LauncherPhase.FINISHED

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in discover_hosts.sh now."""
        published = self.config.published if self.config else None
        return published.hosts if published else ()

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """The host names in discover_hosts.sh by the pod that each stands for."""
        return {names.pod_of(host): host for host in self.hosts}

    def is_published(self, worker: Worker) -> bool:
        """Whether discover_hosts.sh names that worker, under whatever number."""
        return worker.name in self.host_of

    @property
    def memory(self) -> Memory:
        """What we wrote down; empty where nothing was."""
        memory = self.config.memory if self.config else None
        return memory or Memory()

    def worker(self, name: str) -> Worker | None:
        """The worker pod of that name."""
        return next((worker for worker in self.workers if worker.name == name), None)

    def wanted_names(self) -> tuple[str, ...]:
        """The names of the workers that the size asks for."""
        return tuple(names.worker(self.name, index) for index in range(min(self.replicas, MOST_WORKERS)))

    def surplus(self) -> tuple[Worker, ...]:
        """Workers beyond the size asked for, highest index first: the order in which they leave."""
        return tuple(worker for worker in reversed(self.workers) if worker.index >= self.replicas)

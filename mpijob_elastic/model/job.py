"""A job as it was seen, immutable, the only input of a decision.

Times are seconds since the epoch.
"""

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, filterfalse, islice
from typing import TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.bounds import FEWEST_EXECS, MOST_EXECS, MOST_WORKERS
from mpijob_elastic.model.job_facts import JobFacts, Known
from mpijob_elastic.model.kubexec import is_mapped, mapped
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.wire import Owned

K = TypeVar("K", bound=Known)

# A pod's name and an int32.
_LINE = re.compile(r"echo (?P<host>[a-z0-9][a-z0-9.-]{0,252}):(?P<slots>[1-9][0-9]{0,9})\n")
_SLOTS = re.compile(r" slots=([1-9][0-9]{0,9})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The content of discover_hosts.sh: host names in its order, each of another pod, and the slots of each."""

    hosts: tuple[str, ...] = ()
    slots: int = 1


def hostfile_slots(hostfile: str) -> int | None:
    """Return the slots of the first host in a hostfile; None if it names none."""
    found = _SLOTS.search(hostfile)
    return int(found[1]) if found else None


def parse_script(script: str) -> Published | None:
    """Return the hosts of a discover_hosts.sh that we wrote; None for any other, so that an edit by hand is noticed."""
    if script.count("\n") > MOST_WORKERS + 1:
        return None
    found = [(match["host"], int(match["slots"])) for match in _LINE.finditer(script)]
    hosts = tuple(host for host, _ in found)
    slots = found[0][1] if found else 1
    pods = {names.pod_of(host) for host in hosts}
    # Writing the list again shows any difference that reading missed.
    is_ours = len(pods) == len(hosts) and names.discover_hosts(list(hosts), slots=slots) == script
    return Published(hosts=hosts, slots=slots) if is_ours else None


def script_fingerprint(script: str) -> str:
    """Return a short form of discover_hosts.sh for `Memory.script`."""
    return hashlib.sha256(script.encode()).hexdigest()[:12]


class ConfigFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The ConfigMap of an MPIJob; of any other only the metadata. script, memory, kubexec: None if absent.

    writer: field manager that last changed the script, "" if unknown; written_at: its last write,
    by the API server's clock (seconds since the epoch), 0 if unknown. cut: keys of texts that are
    too long to keep, and are nobody's now. packed: all of this, compressed; metadata alone is
    beside it (observe.facts_config).
    """

    metadata: Owned
    script: str | None = None
    hostfile: str = ""
    memory: str | None = None
    kubexec: str | None = None
    writer: str = ""
    written_at: float = 0.0
    cut: tuple[str, ...] = ()
    packed: bytes = b""


class Role(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The launcher's Role. exec_rule: index of the rule on pods/exec, whose resourceNames are `exec_names`; -1 without.

    packed: as in `ConfigFacts`.
    """

    metadata: Owned
    exec_rule: int = -1
    exec_names: tuple[str, ...] = ()
    packed: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The operator's ConfigMap. published: None if discover_hosts.sh is absent or not as we write it."""

    facts: ConfigFacts
    published: Published | None
    memory: Memory | None

    @cached_property
    def ref(self) -> Identity:
        """The ConfigMap at this version: the precondition of every write."""
        return self.facts.metadata

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
        return mapped(self.facts.kubexec) is not None

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of this discover_hosts.sh in the memory written with it."""
        return script_fingerprint(self.facts.script or "")

    @cached_property
    def digest(self) -> str:
        """A name for this change of the launcher's mounted files; an earlier one may have led to the same hosts."""
        memory = self.memory or Memory()
        content = [
            self.facts.script,
            self.facts.hostfile,
            str(memory.added_at),
            str(memory.removed_at),
        ]
        if is_mapped(self.facts.kubexec):
            content.append(self.facts.kubexec)
        return hashlib.sha256("\0".join(part or "" for part in content).encode()).hexdigest()[:16]

    def occasion(self, pod: str) -> str:
        """Return the start of a worker's current probes: its host name in the list, or its leaving; "" for neither.

        Earlier probes do not count: a published worker does not drain, and a new host name starts a
        new rank.
        """
        left = self.memory.left.get(pod) if self.memory else None
        return f"left at {left.at}" if left else self.host_of.get(pod, "")


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job and its objects.

    replicas: the size asked for, less what the job does without; where the MPIJob says none, one
    that covers the workers that are there. foreign: why it is not ours to manage, "" if it is;
    foreign_at: last sign of life of the operator that manages it, infinite if its silence means
    nothing. refused: by the kind of an action that the API server refuses, what to say of it, ""
    until that has been often. selector_due: the status lacks a selector of the workers that the
    MPIJob definition keeps. workers: in numeric order. placeholders: pods that only hold the place
    of a worker that is not wanted. former: probes of pods that left the host list and are gone, by
    name. drains_seen: for how many seconds the process that decides has seen each drain (by pod,
    and when it began), by a clock that never steps; one that is missing is new. The same for each
    `missing` pod, as if that had begun at 0. list_seen: the same for the last change of the host
    list and the touch that shows it; None: longer than anything waits for it. Both None: nobody
    measures, as in the command line. capabilities: what each knows of the job, in their order.
    unread: why its objects that exist cannot be read.
    """

    facts: JobFacts
    replicas: int
    foreign: str = ""
    foreign_at: float = math.inf
    refused: Mapping[type, str] = field(default_factory=dict)
    selector_due: bool = False
    workers: tuple[Worker, ...] = ()
    placeholders: tuple[Worker, ...] = ()
    former: Mapping[str, Probe] = field(default_factory=dict)
    drains_seen: Mapping[tuple[str, float], float] | None = None
    list_seen: float | None = None
    launcher: Launcher | None = None
    config: Config | None = None
    role: Role | None = None
    capabilities: tuple[Known, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: type[K]) -> K | None:
        """Return what a capability knows of the job; None where it has nothing to do with it."""
        return next((known for known in self.capabilities if isinstance(known, kind)), None)

    @cached_property
    def ref(self) -> Identity:
        """The MPIJob at this version: the precondition of every write."""
        return self.facts.metadata

    @cached_property
    def namespace(self) -> str:
        """The job's namespace."""
        return self.facts.metadata.namespace

    @cached_property
    def name(self) -> str:
        """The job's name."""
        return self.facts.metadata.name

    @cached_property
    def policy(self) -> Policy:
        """The user's annotations."""
        return self.facts.policy

    @cached_property
    def elastic(self) -> bool:
        """True if the job can change its size now: its MPIJob decides, and once a driver has started, its launcher.

        A launcher names discover_hosts.sh, or got it at its creation, so an edit of the template or
        of `enabled` is for the next launcher. Only `enabled: "false"` holds at once.
        """
        launcher = self.launcher
        if launcher is None or launcher.phase not in (
            LauncherPhase.STARTED,
            LauncherPhase.FINISHED,
        ):
            return self.facts.elastic
        return self.policy.enabled is not False and (
            launcher.facts.mounts_discovery or launcher.facts.names_discovery
        )

    @property
    def pods(self) -> tuple["Launcher | Worker", ...]:
        """The launcher, if there is one, and the workers."""
        return (self.launcher, *self.workers) if self.launcher else self.workers

    @cached_property
    def ended(self) -> bool:
        """True if no driver runs any more: the job has finished, or its launcher has."""
        return self.facts.finished or (
            self.launcher is not None and self.launcher.phase is LauncherPhase.FINISHED
        )

    @property
    def over_at(self) -> float | None:
        """When it ended for good, by its status or, while the operator has not written that, by its launcher."""
        if self.facts.finished or self.launcher is None or self.launcher.facts.deleting:
            return self.facts.ended_at
        return self.launcher.ended_at

    @property
    def gated(self) -> bool:
        """True if a pod has scheduling gates."""
        for worker in self.workers:
            if worker.facts.gates:
                return True
        return self.launcher is not None and self.launcher.facts.gates != ()

    @property
    def blind(self) -> bool:
        """True if elasticity is asked for, and the driver that runs cannot see the host list."""
        asked = self.facts.elastic or self.elastic
        return (
            asked
            and self.driver_running
            and self.launcher is not None
            and not self.launcher.facts.mounts_discovery
        )

    @cached_property
    def handed_over(self) -> bool:
        """True if our annotation says that we left the job to another operator."""
        return names.is_handed_over(self.facts.notices)

    @cached_property
    def driver_running(self) -> bool:
        """True if horovodrun may be reading discover_hosts.sh now."""
        return self.launcher is not None and self.launcher.phase is LauncherPhase.STARTED

    @cached_property
    def driver_may_run(self) -> bool:
        """True if horovodrun runs or may start at any moment: a pod's status lags behind its node."""
        launcher = self.launcher
        return (
            launcher is not None
            and launcher.phase is not LauncherPhase.FINISHED
            and not launcher.facts.gates
        )

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
        workers = max(
            self.replicas, len(self.workers), len(self.role.exec_names) if self.role else 0
        )
        return min(max(FEWEST_EXECS, 2 * self.facts.slots * workers), MOST_EXECS)

    def worker(self, name: str) -> Worker | None:
        """Return the worker pod of that name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Worker]:
        return {worker.name: worker for worker in self.workers}

    @cached_property
    def wanted_names(self) -> tuple[str, ...]:
        """Names of the workers that the size asks for."""
        return tuple(names.worker(self.name, index) for index in islice(self.wanted, MOST_WORKERS))

    @cached_property
    def wanted(self) -> Collection[int]:
        """Indices of the workers that the size asks for, in order."""
        size, skips = self.replicas, self.facts.asked and self.skips
        return (
            dict.fromkeys(islice(filterfalse(skips.__contains__, count()), size))
            if skips
            else range(size)
        )

    @cached_property
    def skips(self) -> Collection[int]:
        """Indices of the workers that the job does without."""
        return self.facts.skips if self.facts.asked else ()

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Names of the pods that the operator has yet to create: workers, placeholders, and after them the launcher."""
        launcher = () if self.launcher else (names.launcher(self.name),)
        indices = range(min(self.facts.replicas, MOST_WORKERS)) if self.skips else ()
        created = [names.worker(self.name, index) for index in indices] or self.wanted_names
        held = {pod.name for pod in self.placeholders}
        return (
            *(name for name in created if not (name in self._by_name or name in held)),
            *launcher,
        )

    @cached_property
    def surplus(self) -> tuple[Worker, ...]:
        """Workers beyond the size, highest index first: the order in which they leave."""
        return tuple(worker for worker in reversed(self.workers) if worker.index not in self.wanted)

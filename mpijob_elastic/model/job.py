"""A job as last seen, as an immutable value: the only input of a decision.

Times are seconds since the epoch.
"""

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, filterfalse, islice
from typing import Any, TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model import driver
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.bounds import FEWEST_EXECS, MOST_EXECS, MOST_INT32, MOST_WORKERS
from mpijob_elastic.model.driver import Driver
from mpijob_elastic.model.goodput import Ledger
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.kubexec import is_mapped, mapped
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import (
    DRIVER_ENDED,
    NOT_STARTED,
    Launcher,
    LauncherPhase,
    PodFacts,
    Probe,
    Worker,
)
from mpijob_elastic.model.policy import Policy

A = TypeVar("A", bound="Attached")

# A pod's name and an int32.
_HOST = r"echo (?P<host>[a-z0-9][a-z0-9.-]{0,252}):(?P<slots>[1-9][0-9]{0,9})"
_LINE = re.compile(_HOST + r"(?: # (?P<pod>[0-9a-f]{8}))?\n")
# The second line of a list for elastic.sh.
_NUMBER = re.compile(
    names.SCRIPT_HEADER + r"# list (?P<number>[1-9][0-9]{0,9}) drain (?P<drain>[0-9]{1,5})\n"
)
# The last line of a script with a reminder (decide/reminders).
_REMINDER = re.compile(r"^echo (?P<name>[a-z0-9][a-z0-9.-]{0,255}):0\n\Z", re.MULTILINE)
_SLOTS = re.compile(r" slots=([1-9][0-9]{0,9})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The content of discover_hosts.sh."""

    #: Host names in the order of the script, each of a different pod.
    hosts: tuple[str, ...] = ()
    #: Slots of each host.
    slots: int = 1
    #: The name in the line without slots that reminds Horovod's driver of the list; "" without one.
    reminder: str = ""
    #: The number of a list for elastic.sh; 0 for any other list.
    number: int = 0
    #: The fingerprint of the pod of each host, by its host name, in a list for elastic.sh.
    pods: Mapping[str, str] = field(default_factory=dict)


def list_number(script: str) -> int:
    """Return the number of a list for elastic.sh; 0 for any other script."""
    found = _NUMBER.match(script)
    return int(found["number"]) if found else 0


def hostfile_slots(hostfile: str) -> int | None:
    """Return the slots of the first host in a hostfile; None if the file names no host."""
    found = _SLOTS.search(hostfile)
    return int(found[1]) if found else None


def parse_script(script: str) -> Published | None:
    """Return the hosts of a discover_hosts.sh that we wrote.

    None for any other script, so that an edit by hand is noticed.
    """
    if script.count("\n") > MOST_WORKERS + 2:
        return None
    lines = list(_LINE.finditer(script))
    published = Published(
        hosts=tuple(line["host"] for line in lines),
        slots=int(lines[0]["slots"]) if lines else 1,
        reminder=_reminder(script),
        number=list_number(script),
        pods={line["host"]: line["pod"] for line in lines if line["pod"]},
    )
    pods = {names.pod_of(host) for host in published.hosts}
    if not len(published.hosts) == len(pods) <= MOST_WORKERS:
        return None
    # Writing the list again shows any difference that reading missed.
    if _written(script, published) != script:
        return None
    if published.reminder and not published.hosts:
        return None
    if published.number > MOST_INT32:
        return None
    return published


def _reminder(script: str) -> str:
    last = _REMINDER.search(script)
    return last["name"] if last and names.reminder_number(last["name"]) else ""


def _written(script: str, published: Published) -> str:
    """Return the script of these hosts, in the form of the given script."""
    header = _NUMBER.match(script)
    if header is None:
        hosts = list(published.hosts)
        return names.discover_hosts(hosts, slots=published.slots, reminder=published.reminder)
    drain = int(header["drain"])
    return names.numbered_hosts(
        published.pods, slots=published.slots, number=published.number, drain=drain
    )


def script_fingerprint(script: str) -> str:
    """Return a short form of a script: of discover_hosts.sh for `Memory.script`, of elastic.sh."""
    return hashlib.sha256(script.encode()).hexdigest()[:12]


class ConfigFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The ConfigMap of an MPIJob; of any other ConfigMap only the metadata."""

    metadata: Owned
    #: discover_hosts.sh; None if absent.
    script: str | None = None
    #: The operator's list of workers; "" if absent.
    hostfile: str = ""
    #: The value of annotation `names.MEMORY`; None if absent.
    memory: str | None = None
    #: The value of annotation `names.HISTORY`, in UTF-8; b"" if absent, or too long to be ours. It
    #: is kept so that nothing has to be read before the host list is written.
    history: bytes = b""
    #: kubexec.sh; None if absent.
    kubexec: str | None = None
    #: The fingerprint (`script_fingerprint`) of elastic.sh; "" if absent.
    elastic: str = ""
    #: True if the hostfile for hydra is there.
    has_hydra: bool = False
    #: Field manager that last changed the script; "" if unknown.
    writer: str = ""
    #: Last write of `writer`, by the API server's clock (seconds since the epoch); 0 if unknown.
    written_at: float = 0.0
    #: Keys of texts that are too long to keep: only their start is kept, which is no text of ours.
    cut: tuple[str, ...] = ()


class Role(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The launcher's Role."""

    metadata: Owned
    #: Index of the rule on pods/exec; -1 if the Role has no such rule.
    exec_rule: int = -1
    #: The resourceNames of that rule.
    exec_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """The operator's ConfigMap."""

    facts: ConfigFacts
    #: The host list; None if discover_hosts.sh is absent or not as we write it.
    published: Published | None
    #: None if the annotation is absent or unreadable.
    memory: Memory | None

    @cached_property
    def ref(self) -> Identity:
        """The ConfigMap at this version: the precondition of every write."""
        return self.facts.metadata

    @cached_property
    def signed(self) -> bool:
        """True if discover_hosts.sh is the script together with which our memory was written."""
        return self.memory is not None and self.memory.script == self.fingerprint

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """Host names in discover_hosts.sh by pod, in its order."""
        return {names.pod_of(host): host for host in self.published.hosts} if self.published else {}

    @property
    def number(self) -> int:
        """The number of a list for elastic.sh; 0 for any other list."""
        return self.published.number if self.published else 0

    @property
    def is_new(self) -> bool:
        """True if nobody has changed the list since the webhook made it."""
        return self.memory is None and self.facts.script == names.discover_hosts([], slots=1)

    @cached_property
    def finds_numbered(self) -> bool:
        """True if the launcher finds the pod of a numbered host name, at least with our line.

        The line goes into the operator's kubexec.sh (see `kubexec.mapped`).
        """
        return mapped(self.facts.kubexec) is not None

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of this discover_hosts.sh in the memory written with it."""
        return script_fingerprint(self.facts.script or "")

    @cached_property
    def digest(self) -> str:
        """A name for this change of the launcher's mounted files.

        An earlier change may have led to the same hosts, so the times in the memory count too.
        """
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
        """Return the occasion of a worker's probes: its host name in the list, or its leaving.

        Each list for elastic.sh is another occasion, because all ranks start again.

        "" if the worker is neither published nor leaving. Probes of an earlier occasion do not
        count: a published worker does not drain, and a new host name starts a new rank.
        """
        left = self.memory.left.get(pod) if self.memory else None
        if left:
            return f"left at {left.at}"
        host = self.host_of.get(pod, "")
        if host and self.number:
            return f"{host} in list {self.number}"
        return host


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """Our deletions of pods of one name, while the MPIJob asks for the same."""

    #: The number of deletions, at least 1.
    count: int
    #: Seconds since the last deletion, by a clock that never steps.
    ago: float


class Attached:
    """A capability of one job, with what it knows of the job; decide.capability has more."""


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job and its objects."""

    facts: JobFacts
    #: The size asked for, without the workers that the job skips. Where the MPIJob gives no size, a
    #: size that covers the existing workers.
    replicas: int
    #: Why we must not manage the job; "" if it is ours.
    foreign: str = ""
    #: Last sign of life of the operator that manages a foreign job (seconds since the epoch);
    #: infinite if its silence means nothing.
    foreign_at: float = math.inf
    #: The kinds of actions that the API server refuses, and the words of the notice about each; ""
    #: until the refusals are many.
    refused: Mapping[type, str] = field(default_factory=dict)
    #: True if the status lacks the selector of the workers, which the MPIJob definition would keep.
    selector_due: bool = False
    #: In numeric order.
    workers: tuple[Worker, ...] = ()
    #: Pods that only hold the place of a worker that is not wanted.
    placeholders: tuple[Worker, ...] = ()
    #: Probes of pods that left the host list and are gone, by pod name.
    former: Mapping[str, Probe] = field(default_factory=dict)
    #: For how many seconds the process that decides has seen each drain (by pod and by the time
    #: when the drain began), by a clock that never steps; a drain without an entry is new. Each pod
    #: in `missing` has such an entry too, with 0 as the time when it began. None if nobody
    #: measures, as in the command line.
    drains_seen: Mapping[tuple[str, float], float] | None = None
    #: For how many seconds, by the same clock, the process has seen the last change of the host
    #: list and the touch that shows it. None if that is longer than anything waits for it, or if
    #: nobody measures.
    list_seen: float | None = None
    #: The pods that this process has deleted since the MPIJob asks for what it asks for now, by
    #: name; the pace of further deletions (decide.pace) counts from them.
    deleted: Mapping[str, Deleted] = field(default_factory=dict)
    launcher: Launcher | None = None
    config: Config | None = None
    role: Role | None = None
    #: What each capability knows of the job, in the order of the capabilities.
    capabilities: tuple[Attached, ...] = ()
    #: Objects of the job that exist and cannot be read (kind and name), with the reason.
    unread: Mapping[str, str] = field(default_factory=dict)
    #: What is known of its launcher and workers that cannot be read, by name: identity, age, gates,
    #: phase, and whether they are being deleted.
    hidden: Mapping[str, PodFacts] = field(default_factory=dict)
    #: The times of its worker pods, for its GPU-seconds; None if nobody follows them.
    ledger: Ledger | None = None
    #: For how many seconds, by a clock that never steps, the process that decides has seen that
    #: something hinders what must go (decide/overdue); None if nothing does, or if nobody measures.
    hindered_for: float | None = None

    @cached_property
    def _capabilities_of(self) -> dict[type[Attached], tuple[Any, ...]]:
        return {}

    def all_of(self, kind: type[A]) -> tuple[A, ...]:
        """Return the capabilities of a kind, in their order; a decision asks for them often."""
        found = self._capabilities_of.get(kind)
        if found is None:
            found = tuple(known for known in self.capabilities if isinstance(known, kind))
            self._capabilities_of[kind] = found
        return found

    def of(self, kind: type[A]) -> A | None:
        """Return what a capability knows of the job; None if it has nothing to do with the job."""
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
        """True if the job can change its size now.

        Once a driver has started, its launcher decides: it names discover_hosts.sh, or got it at
        its creation. An edit of the template or of `enabled` takes effect with the next launcher,
        and only `enabled: "false"` at once. A launcher that has not started can still be made again
        to be elastic, so until then it is enough that the MPIJob or the launcher is.
        """
        launcher = self.launcher
        if launcher is None or launcher.phase in NOT_STARTED:
            return self.facts.acts_elastic
        return self.policy.enabled is not False and (
            launcher.facts.mounts_discovery or launcher.facts.names_discovery
        )

    @cached_property
    def driver(self) -> Driver:
        """The driver of the launcher; until its driver has started, that of the next launcher."""
        launcher = self.launcher
        if launcher is None or launcher.phase in NOT_STARTED:
            return self.facts.driver
        return driver.ELASTIC if launcher.facts.mounts_elastic else driver.HOROVOD

    @property
    def pods(self) -> tuple["Launcher | Worker", ...]:
        """The launcher, if it exists, and the workers."""
        return (self.launcher, *self.workers) if self.launcher else self.workers

    @cached_property
    def ended(self) -> bool:
        """True if no driver runs any more: the job has finished, or its launcher's driver has."""
        return self.facts.finished or (
            self.launcher is not None and self.launcher.phase in DRIVER_ENDED
        )

    @property
    def lingers(self) -> bool:
        """True if the driver has ended, but another container keeps its launcher from ending.

        [operator] The job ends with the launcher pod, so it does not end by itself.
        """
        return self.launcher is not None and self.launcher.phase is LauncherPhase.LINGERING

    def is_over(self, *, stops: bool) -> bool:
        """Tell whether the driver has ended, and nothing of ours is left to do for the launcher.

        stops: the job is to be stopped, so a launcher that lingers has yet to go.
        """
        return self.ended and not (self.lingers and stops)

    @property
    def has_succeeded(self) -> bool:
        """True if the training has ended well, by the status or, before it, by the launcher."""
        if self.launcher is not None and self.launcher.facts.phase == "Succeeded":
            return True
        return self.facts.succeeded_at is not None

    @property
    def over_at(self) -> float | None:
        """The time when the job ended for good; None if it has not.

        It comes from the status or, until the operator has written that, from the launcher.
        """
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
        """True if the job is to be elastic, and the running driver cannot see the host list."""
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
        """True if a driver may be reading discover_hosts.sh now."""
        return self.launcher is not None and self.launcher.phase is LauncherPhase.STARTED

    @cached_property
    def driver_may_run(self) -> bool:
        """True if a driver runs or may start any moment: a pod's status lags behind its node."""
        launcher = self.launcher
        return (
            launcher is not None and launcher.phase not in DRIVER_ENDED and not launcher.facts.gates
        )

    @cached_property
    def published_pods(self) -> tuple[str, ...]:
        """The pods in discover_hosts.sh, in its order; for their host names see `host_of`."""
        return tuple(self.host_of)

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """Host names in discover_hosts.sh by pod, in its order."""
        return self.config.host_of if self.config else {}

    def listed_pod(self, name: str) -> str:
        """Return the fingerprint of the pod that a list for elastic.sh names; "" without one."""
        published = self.config.published if self.config else None
        return published.pods.get(self.host_of.get(name, ""), "") if published else ""

    @property
    def acknowledged(self) -> Acknowledgement:
        """What elastic.sh has acknowledged in the launcher."""
        return self.launcher.acknowledged if self.launcher else Acknowledgement()

    @cached_property
    def memory(self) -> Memory:
        """The memory; an empty memory if the ConfigMap has none that can be read."""
        memory = self.config.memory if self.config else None
        return memory or Memory()

    @property
    def most_execs(self) -> int:
        """Bound on the execs of the launcher.

        Each rank has a running exec, and may have another that outlives its pod.
        """
        return min(max(FEWEST_EXECS, 2 * self.facts.slots * self.most_workers), MOST_EXECS)

    @property
    def most_workers(self) -> int:
        """Bound on the workers in which the launcher may have ranks.

        The size may be any number, and the Role may name workers that never were.
        """
        allowed = len(self.role.exec_names) if self.role else 0
        most = max(self.replicas, len(self.workers), len(self.memory.left), allowed)
        return min(most, MOST_WORKERS)

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """Names of the launcher and the workers that exist and cannot be read.

        A pod with another name is no part of the job, whoever made the job its owner.
        """
        pods = [what.removeprefix("Pod ") for what in self.unread if what.startswith("Pod ")]
        launcher = names.launcher(self.name)
        return tuple(
            pod
            for pod in pods
            if pod == launcher or names.worker_index(pod, job=self.name) is not None
        )

    @property
    def may_run_unseen(self) -> bool:
        """True if something may run in a pod that cannot be read."""
        return any(pod not in self.hidden or not self.hidden[pod].idle for pod in self.unseen)

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
        size, skips = self.replicas, self.skips
        if not skips:
            return range(size)
        return dict.fromkeys(islice(filterfalse(skips.__contains__, count()), size))

    @cached_property
    def skips(self) -> Collection[int]:
        """Indices of the workers that the job skips."""
        return self.facts.skips

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Names of the pods that the operator has yet to create.

        Workers and placeholders come first, the launcher last.
        """
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

"""The state of one job's whole world, small enough that all of them can be visited.

Workers are numbers, sets of them are bit masks, and so are sets of hosts: bit `number * MOST +
index` is the host name of that number of a worker. Times are ages in ticks of TICK seconds, cut off
where more makes no difference. A tick is as long as a change takes to settle, and longer than a
touched launcher and its driver need to read a new list; whatever happens within a tick, happens in
every order.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from mpijob_elastic.model.policy import Policy

TICK = 3.0
# Workers at most.
MOST = 4
# Ages that make no further difference, in ticks: of a drain, of anything that waits for ten
# seconds.
LONGEST_DRAIN = 3
TEN_SECONDS = 4
# Of a pod without a gate that a suspended job may delete (decide.stop).
LONGEST_PACE = 2
# As long as a newcomer needs to have the training's state (decide.moves).
SEASONED = 10
# As long as a worker that came to such a node for the second time stays there.
SECOND_MOVE = 10
LONGEST_IDLE = 10
NEVER = -1
# The lowest number of a list for elastic.sh, above that of a first list.
LOWEST = 4
# Stands for any pod, where a host name is free.
FREE = -2

PENDING, READY, FAILED = range(3)
WAITING, DELIVERING, STARTED, FINISHED = range(4)
NOTHING, SYNC, READING = range(3)


class Job(NamedTuple):
    """The MPIJob. over: it has succeeded. suspended: its user asks for that; told: our annotation says so.

    parked: whether the first worker is.
    """

    replicas: int
    elastic: bool = True
    over: bool = False
    suspended: bool = False
    told: bool = False
    parked: bool = False

    @property
    def skips(self) -> frozenset[int]:
        """The workers that it does without."""
        return frozenset({0}) if self.parked and self.elastic else frozenset()

    @property
    def wanted(self) -> int:
        """The workers that it asks for, as a set."""
        return mask([index for index in range(self.replicas) if index not in self.skips])

    @property
    def stops(self) -> bool:
        """True if it is to have no running pods: a job that is not elastic cannot be suspended."""
        return self.suspended and self.elastic


class Pod(NamedTuple):
    """A worker pod; uid tells incarnations of one name apart. doomed: its node is about to go.

    lost_age: since its node was deleted, NEVER while that is there. gentle: for how many ticks its
    ranks still have time to leave after somebody else deleted it. gated: it waits at our scheduling
    gate. before: it was there before the launcher. placeholder: it waits for good.
    """

    phase: int = PENDING
    going: bool = False
    created_age: int = 0
    ready_age: int = 0
    uid: int = 0
    doomed: bool = False
    lost_age: int = NEVER
    gentle: int = 0
    gated: bool = False
    before: bool = False
    placeholder: bool = False

    @property
    def works(self) -> bool:
        """True if it takes part as it should."""
        return self.phase == READY and not self.going and self.lost_age == NEVER


class Launcher(NamedTuple):
    """The launcher pod, as the API server has it. older: than the last drop of a name from the hostfile.

    delivering_age: of kubectl-delivery; shown_age: since it was touched for what is published,
    NEVER where it was not. gated: as for a pod. age: since its creation, where it may be suspended.
    """

    phase: int = WAITING
    going: bool = False
    older: bool = False
    delivering_age: int = 0
    shown_age: int = NEVER
    uid: int = 0
    gated: bool = False
    age: int = 0


class Node(NamedTuple):
    """The state that only the launcher's node knows. known: hosts that the driver has read; mounted: hosts in its file.

    list, mounted_list: their numbers, for elastic.sh; NEVER if it has read none. started: hosts on
    which elastic.sh has started ranks, and stops: it ends them. ack_list, ack_busy: what it has
    acknowledged. left: hosts in which something may run that it could not end; former: those of a
    driver before it, in the same pod.

    young: the launcher was created within this tick. unseen: what kubectl-delivery still waits for.
    owes: what a touch has yet to bring about, the sync of the file or its reading. black: hosts
    that the driver never uses again, for a rank died there. maps: whether kubexec.sh as it is
    mounted finds the pod of a numbered host.
    """

    young: bool = True
    owes: int = NOTHING
    unseen: int = 0
    mounted: int = 0
    known: int = 0
    black: int = 0
    maps: bool = False
    list: int = NEVER
    mounted_list: int = 0
    started: int = 0
    stops: bool = False
    ack_list: int = NEVER
    ack_busy: int = 0
    left: int = 0
    former: int = 0


class Left(NamedTuple):
    """Since when a pod is not in the list any more. known_age: since when the launcher knew, where that is written.

    list: the number of the list with which it left.
    """

    age: int
    uid: int
    known_age: int = NEVER
    list: int = 0


class Tries(NamedTuple):
    """Replacements of a failed worker: how many so far, how long ago the last, of which pod."""

    times: int
    age: int
    uid: int


class Name(NamedTuple):
    """The number in the host name that a worker was last given, and which pod that was, or FREE.

    reformed: see Host in model.memory.
    """

    uid: int
    number: int
    reformed: bool = False


class Config(NamedTuple):
    """The ConfigMap. known: it has a memory; changed_age: since hosts last came or went; dropped_age: see Memory.

    hosts: of discover_hosts.sh. maps: whether kubexec.sh finds the pod of a numbered host name.
    number: of a list for elastic.sh; then the names are the pods that it names.
    """

    hosts: int
    hostfile: int
    left: tuple[Left | None, ...]
    replaced: tuple[Tries | None, ...]
    moved: tuple[Tries | None, ...]
    names: tuple[Name | None, ...]
    renamed: tuple[Tries | None, ...]
    known: bool = False
    maps: bool = False
    changed_age: int = NEVER
    dropped_age: int = NEVER
    number: int = 0


class Probe(NamedTuple):
    """The result of probing a leaving worker."""

    busy_seen: bool = False
    idle_age: int = NEVER
    asked_age: int = NEVER


class Looked(NamedTuple):
    """The acknowledgement of elastic.sh as the controller has last read it."""

    number: int = NEVER
    busy: int = 0
    asked_age: int = 0


class Watch(NamedTuple):
    """The result of probing a published worker. idle_age: since when nothing runs there, NEVER while a rank runs."""

    busy_seen: bool = False
    idle_age: int = NEVER


class Seen(NamedTuple):
    """The state of what others change, as the watches have shown it."""

    job: Job
    pods: tuple[Pod | None, ...]
    launcher: Launcher | None


class World(NamedTuple):
    """Everything. ranks: hosts in which a rank lives; edits, faults: how many may still happen.

    orphans: hosts in which ranks live whose launcher was deleted at once, and may not have ended
    yet. suspensions, parks: as edits.

    probes: what exec has shown of workers that left the list; drained: workers that did so and are
    gone, and of which that has shown that they had drained; watch: what it has shown of published
    workers. looked: what the controller knows of elastic.sh. late: what the caches still show, None
    where they are up to date.
    """

    job: Job
    pods: tuple[Pod | None, ...]
    launcher: Launcher | None
    config: Config
    role: int
    probes: tuple[Probe | None, ...]
    node: Node
    ranks: int
    edits: int
    faults: int
    watch: tuple[Watch | None, ...]
    drained: int = 0
    looked: Looked | None = None
    late: Seen | None = None
    orphans: int = 0
    suspensions: int = 0
    parks: int = 0

    @property
    def seen(self) -> Seen:
        """Return the state that the controller decides on."""
        return self.late or Seen(self.job, self.pods, self.launcher)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One bounded world. size: most workers. faults: which may happen. late_caches: whether they may lag.

    watched: whether published workers are looked into. unplaced: workers that no node ever takes.
    suspensions: how often its user may suspend or resume the job. parks: how often its user may
    park the first worker or have it back. elastic_sh: whether that is the driver.
    """

    size: int
    edits: int
    start: int
    running: bool = True
    fault_budget: int = 0
    faults: frozenset[str] = field(default_factory=frozenset)
    late_caches: bool = False
    watched: bool = False
    unplaced: int = 0
    suspensions: int = 0
    parks: int = 0
    elastic_sh: bool = False
    clean_pod_policy: str = "None"
    policy: Policy = field(default_factory=lambda: Policy(drain_timeout=LONGEST_DRAIN * TICK))


def mask(indices: list[int]) -> int:
    """These workers as a set."""
    return sum(1 << index for index in set(indices))


def members(workers: int) -> list[int]:
    """The workers in a set, in order."""
    return [index for index in range(workers.bit_length()) if workers >> index & 1]


def numbers(host: int) -> tuple[int, int]:
    """Return the worker index and the number in the name of a host, from its bit position."""
    return host % MOST, host // MOST


def pods_of(hosts: int) -> int:
    """The workers that these hosts stand for, as a set."""
    return mask([host % MOST for host in members(hosts)])


def hosts_of(workers: int, hosts: int) -> int:
    """Return the hosts that stand for these workers."""
    return mask([host for host in members(hosts) if workers >> host % MOST & 1])


def first(setup: Setup) -> World:
    """A job that trains at rest on its first size, or a job that was only just created."""
    start, nothing = (1 << setup.start) - 1, (None,) * setup.size
    pods = tuple(
        Pod(phase=READY, ready_age=1) if index < setup.start else None
        for index in range(setup.size)
    )
    node = Node(young=False, mounted=start, known=start)
    if setup.elastic_sh:
        lists = Node(list=LOWEST, mounted_list=LOWEST, ack_list=LOWEST, ack_busy=start)
        node = lists._replace(young=False, mounted=start, known=start, started=start)
    config = Config(
        number=LOWEST if setup.elastic_sh and setup.running else 0,
        hosts=start if setup.running else 0,
        hostfile=start,
        left=nothing,
        replaced=nothing,
        moved=nothing,
        names=tuple(
            Name(0, 0) if setup.running and index < setup.start else None
            for index in range(setup.size)
        ),
        renamed=nothing,
    )
    return World(
        job=Job(setup.start),
        pods=pods if setup.running else nothing,
        launcher=Launcher(phase=STARTED, shown_age=1, age=LONGEST_PACE) if setup.running else None,
        config=config._replace(known=True, changed_age=1) if setup.running else config,
        role=start,
        probes=nothing,
        node=node if setup.running else Node(),
        ranks=start if setup.running else 0,
        edits=setup.edits,
        faults=setup.fault_budget,
        suspensions=setup.suspensions,
        parks=setup.parks,
        watch=nothing,
    )

"""Random histories of jobs in a queue: what users, Kueue, failures and crashes do, and what must hold all the time.

`play` returns what went wrong in the history of a seed, with the steps that led there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model.json_parts import timestamp
from mpijob_elastic.names import PARKED, SIZES, SUSPEND
from tests.doubles.api import Object
from tests.queued_cluster import (
    NAMESPACE,
    Cluster,
    Crash,
    Leader,
    asks,
    gated,
    holds,
    holds_place,
    owner_of,
    parked,
    pods_of,
    pods_wanted,
    running,
    size_of,
    uid_of_owner,
)  # fmt: skip

MOST = 4
ROUND = 5.0  # seconds
TAIL, REST = (
    120,
    12,
)  # rounds until nothing may change any more, and without a change that count as rest

# The most writes of one kind to one object in the quiet tail: twice as many as deletions of a pod that
# comes back (decide.pace).
MOST_SAME = 20

ELASTIC_SH = (names.ELASTIC_PATH, "--", "mpirun", "train")
# More fields than are read of a job.
MANY = [{"name": "A"}] * 6000

# A step: its kind, which job, and a number that chooses further.
Step = tuple[str, int, int]
KINDS = (
    *(
        "size",
        "least",
        "suspend",
        "preempt",
        "fail",
        "lose",
        "relaunch",
        "queue",
        "crash",
        "lag",
        "hang",
        "pass",
    ),
    *("size", "preempt", "crash", "lag", "finish", "delete", "forge", "template"),
    *("park", "sizes"),
)
# What a user may write into the annotation.
LISTS = ("2,4", "*2", "1,2,4", "3,4", None)


def drawn(
    seed: int, *, jobs: int, most: int = 12, kinds: Sequence[str] = KINDS
) -> tuple[int, list[Step]]:
    """Return the quota and the steps of a history."""
    random = Random(seed)
    steps = [
        (random.choice(kinds), random.randrange(jobs), random.randrange(1000))
        for _ in range(random.randint(3, most))
    ]  # fmt: skip
    return random.randint(2, 4 + 2 * jobs), steps


@dataclass
class History:
    """A history as it goes on. free: pods that may run outside the quota, because their job left its queue.

    holding: uids of placeholders. lists: the hosts that were last seen of each job, by uid.
    restarts: every how many-th job elastic.sh runs, 0 if none. KIND: the cluster. LABELS, NOTES: labels and annotations by which a job queues. KINDS: of its steps.
    """

    jobs: int
    quota: int
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)
    free: set[str] = field(default_factory=set)
    holding: set[str] = field(default_factory=set)
    lists: dict[str, set[str]] = field(default_factory=dict)
    born: int = 0

    KIND: ClassVar[type[Cluster]] = Cluster
    LABELS: ClassVar = {LABEL_QUEUE: "team"}
    NOTES: ClassVar[dict[str, str]] = {}
    KINDS: ClassVar[Sequence[str]] = KINDS

    def __post_init__(self) -> None:
        self.cluster = self.KIND(self.quota)
        self.leader = Leader(self.cluster)
        for number in range(self.jobs):
            self._create(f"j{number}", least=1 + number % 2)

    async def play(self, steps: Sequence[Step]) -> list[str]:
        """Play steps and a quiet tail; return what went wrong."""
        await self._round()
        await self._round()
        for kind, job, number in steps:
            self._step(kind, f"j{job}", number)
            for _ in range(1 + number % 3):
                await self._round()
            if self.wrong:
                return self.wrong
        self._calm()
        rest, began = 0, self.cluster.now
        for _ in range(TAIL):
            before = self.cluster.revision
            await self._round()
            rest = rest + 1 if self.cluster.revision == before else 0
            if rest == REST or self.wrong:
                break
        else:
            self.wrong.append(f"still not at rest: {self.cluster.writes[-6:]}")
        return self.wrong or [*self._too_often(began), *self._at_rest()]

    def _calm(self) -> None:
        """End what disturbs the controller."""
        self.cluster.lagging, self.cluster.hanging, self.cluster.crash_in = None, None, 0

    def _too_often(self, began: float) -> Iterator[str]:
        """Yield that the controller wrote more than its jobs may need since all is quiet."""
        written = self.cluster.written(since=began)
        for (method, path), count in written.items():
            if count > MOST_SAME:
                over = self.cluster.now - began
                yield f"{method} {path}: {count} times in {over:.0f} s without an edit"

    async def _round(self) -> None:
        cluster = self.cluster
        cluster.now += ROUND
        for act in (cluster.operate, cluster.run, cluster.grant):
            act()
            self._watch()
        cluster.serve()
        try:
            await self.leader.look()
        except Crash:
            self.leader = Leader(cluster)
        self._watch()

    def _create(self, name: str, *, least: int, **more: str) -> None:
        self.born += 1
        notes = {names.MIN_REPLICAS: str(least), **self.NOTES, **more}
        job = objects.mpi_job(
            name=name,
            uid=f"job-{self.born}",
            replicas=2,
            annotations=notes,
            conditions=["Created"],
            command=ELASTIC_SH
            if self.restarts and self.born % self.restarts == 0
            else objects.ELASTIC,
        )
        job["metadata"]["labels"] = {**self.LABELS}
        job["spec"]["cleanPodPolicy"] = "Running"
        self.cluster.put(MPI_JOBS.path(NAMESPACE, name), job)

    def _step(self, kind: str, name: str, number: int) -> None:
        cluster = self.cluster
        job = cluster.get(MPI_JOBS, name)
        if kind in ("crash", "lag", "hang", "pass"):
            self._trouble(kind, number)
        elif kind == "preempt":
            found = [
                one
                for one in cluster.all(WORKLOADS)
                if holds(one, "Admitted") and not holds(one, "Finished")
            ]
            if found:
                cluster.judge(found[number % len(found)], Evicted=True)
        elif job is None:
            self._create(name, least=1 + number % 2)
        elif kind == "delete":
            if cluster.lagging:  # quota goes with the pods that were seen to own it: a known limit
                self._set_free(name)
            cluster.remove(MPI_JOBS.path(NAMESPACE, name))
        elif kind in ("size", "least", "suspend", "queue", "forge", "template", "park", "sizes"):
            self._edit(kind, job, number)
        else:
            self._disturb(kind, name, number)

    def _trouble(self, kind: str, number: int) -> None:
        """Let something happen to the controller, what it sees, or what it writes."""
        cluster = self.cluster
        match kind:
            case "crash":
                cluster.crash_in = 1 + number % 6
            case "lag":
                cluster.lagging = (*cluster.watched, None)[number % (len(cluster.watched) + 1)]
            case "hang":
                kinds = (MPI_JOBS, PODS, CONFIG_MAPS, cluster.ASKS, None)
                cluster.hanging, cluster.late = kinds[number % len(kinds)], number % 2 == 1
            case "pass":
                cluster.now += number

    def _edit(self, kind: str, job: Object, number: int) -> None:
        cluster, notes, least = self.cluster, job["metadata"]["annotations"], least_of(job)
        match kind:
            case "size":
                size = least + number % (MOST - least + 1)
                self._bound(job, spec={"mpiReplicaSpecs": {"Worker": {"replicas": size}}})
            case "least":
                self._bound(
                    job,
                    metadata={"annotations": {names.MIN_REPLICAS: str(1 + number % size_of(job))}},
                )
            case "park":
                these = ",".join(str(index) for index in range(MOST) if number >> index & 1)
                cluster.edit(job, metadata={"annotations": {PARKED: these or None}})
            case "sizes":
                cluster.edit(job, metadata={"annotations": {SIZES: LISTS[number % len(LISTS)]}})
            case "suspend":
                to = None if notes.get(SUSPEND) else "true"
                cluster.change(MPI_JOBS, job, metadata={"annotations": {SUSPEND: to}})
            case "queue":
                to = (None, "team", "other")[number % 3]
                cluster.edit(job, metadata={"labels": {LABEL_QUEUE: to}})
                if to is None or not queue_of(job):
                    self._set_free(job["metadata"]["name"])

            case "forge":
                # A user may write a status, and take it back.
                ends = not job["status"].get("completionTime")
                kinds = ("Created", "Succeeded") if ends else ("Created",)
                conditions = [{"type": one, "status": "True"} for one in kinds]
                at = timestamp(cluster.now) if ends else None
                cluster.edit(job, status={"conditions": conditions, "completionTime": at})
            case "template" if queue_of(job):
                spec = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
                first = {**spec["containers"][0], "env": MANY if number % 3 == 0 else []}
                node = (None, "n", None)[number % 3]
                template = {"spec": {"nodeName": node, "containers": [first]}}
                cluster.edit(job, spec={"mpiReplicaSpecs": {"Worker": {"template": template}}})

    def _bound(self, job: Object, **patch: object) -> None:
        """Change what bounds the size; beside parked workers and lists of sizes only as the webhook allows it."""
        if {PARKED, SIZES}.isdisjoint(job["metadata"]["annotations"]):
            self.cluster.change(MPI_JOBS, job, **patch)
        else:
            self.cluster.edit(job, **patch)

    def _disturb(self, kind: str, name: str, number: int) -> None:
        cluster = self.cluster
        role = names.ROLE_WORKER if kind in ("fail", "lose") else names.ROLE_LAUNCHER
        found = [
            pod
            for pod in pods_of(cluster, name, role)
            if kind in ("lose", "relaunch") or running(pod)
        ]
        if found:
            pod = found[number % len(found)]
            if kind in ("lose", "relaunch"):
                cluster.end(pod)
            else:
                cluster.change(
                    PODS, pod, status={"phase": "Failed" if kind == "fail" else "Succeeded"}
                )

    def _set_free(self, name: str) -> None:
        self.free |= {pod["metadata"]["uid"] for pod in pods_of(self.cluster, name)}

    def _watch(self) -> None:
        self._watch_quota()
        if not self.wrong:
            self.wrong += self.cluster.killed[:1]
        for pod in self.cluster.all(PODS):
            uid = pod["metadata"]["uid"]
            if holds_place(pod):
                self.holding.add(uid)
            if (
                uid in self.holding
                and (not holds_place(pod) or pod["spec"].get("nodeName"))
                and not self.wrong
            ):
                self.wrong.append(f"{pod['metadata']['name']} was a placeholder, and may run")
        self._watch_growth()

    def _watch_growth(self) -> None:
        """Note a list that has grown to a size which its job may not have, unless an old watch may be why."""
        for job in self.cluster.all(MPI_JOBS):
            uid, now = job["metadata"]["uid"], self.cluster.listed(job["metadata"]["name"])
            before, sizes = self.lists.get(uid, set()), sizes_of(job)
            self.lists[uid] = now
            may_be = not sizes or len(now) in sizes or min(sizes) > len(now) or self.cluster.lagging
            if before and before < now and not may_be and not self.wrong:
                self.wrong.append(f"{sorted(before)} became {sorted(now)}, sizes {sizes}")

    def _watch_quota(self) -> None:
        """Note where more pods may run than quota is set aside for their job."""
        cluster = self.cluster
        granted: dict[str, int] = {}
        for job in cluster.all(MPI_JOBS):
            if not queue_of(job):
                self._set_free(job["metadata"]["name"])
        for one in cluster.all(WORKLOADS):
            uid = uid_of_owner(one)
            if holds(one, "QuotaReserved") and not holds(one, "Finished"):
                granted[uid] = granted.get(uid, 0) + asks(one)
        using: dict[str, list[str]] = {}
        for pod in cluster.all(PODS):
            if may_run(pod) and pod["metadata"]["uid"] not in self.free:
                using.setdefault(uid_of_owner(pod), []).append(pod["metadata"]["name"])
        for uid, pods in using.items():
            if len(pods) > granted.get(uid, 0) and not self.wrong:
                self.wrong.append(f"{pods} may run with quota for {granted.get(uid, 0)}")

    def _at_rest(self) -> Iterator[str]:
        """Yield what must not be so after a long quiet time."""
        yield from self._left_over()
        cluster = self.cluster
        for job in cluster.all(MPI_JOBS):
            name = job["metadata"]["name"]
            found = {
                one["metadata"]["name"]: one
                for one in cluster.all(WORKLOADS)
                if owner_of(one) == name
            }
            pods = {pod["metadata"]["name"]: pod for pod in pods_of(cluster, name)}
            if job["status"].get("completionTime"):
                first = pods.get(
                    names.launcher(name)
                )  # it may train although somebody says that it has ended
                yield from (
                    _given_back(found) if first and may_run(first) else _finished(found, pods)
                )
            elif job["metadata"]["annotations"].get(SUSPEND):
                yield from (f"{one} of a suspended job" for one in found)
                yield from (
                    f"{pod} runs while suspended" for pod, item in pods.items() if not gated(item)
                )
                yield from misplaced(job, pods)
            else:
                yield from self._going(job, found, pods)

    def _left_over(self) -> Iterator[str]:
        """Yield what is there of jobs that are not."""
        cluster = self.cluster
        jobs = {job["metadata"]["uid"]: job["metadata"]["name"] for job in cluster.all(MPI_JOBS)}
        for one in (*cluster.all(cluster.ASKS), *cluster.all(PODS), *cluster.all(CONFIG_MAPS)):
            if uid_of_owner(one) not in jobs:
                yield f"{one['metadata']['name']} is left over"
        for _, name in self.leader.remembered() - {(NAMESPACE, name) for name in jobs.values()}:
            yield f"{name} is remembered"

    def _going(
        self, job: Object, found: dict[str, Object], pods: dict[str, Object]
    ) -> Iterator[str]:
        name = job["metadata"]["name"]
        wanted = pods_wanted(job)
        if {*pods} != wanted:
            yield f"{sorted(pods)} instead of {sorted(wanted)}"
        yield from misplaced(job, pods)
        yield from self._unlisted(job, pods)
        if not queue_of(job):
            yield from (f"{one} without a queue" for one in found)
            here = {pod: item for pod, item in pods.items() if not holds_place(item)}
            yield from (f"{pod} waits without a queue" for pod, item in here.items() if gated(item))
            yield from (f"{pod} does not run" for pod, item in here.items() if not running(item))
            return
        base = found.get(names.launcher(name))
        if base is None:
            yield f"{name} asks for no quota"
            return
        yield from self._waiting(base, found, pods)
        yield from self._idle(name, found, pods)

    def _idle(self, name: str, found: dict[str, Object], pods: dict[str, Object]) -> Iterator[str]:
        """Yield the pods that have quota and do not train, and the quota that no pod has."""
        for pod, item in pods.items():
            if (
                not gated(item)
                and not running(item)
                and not gated(pods.get(names.launcher(name), item))
            ):
                yield f"{pod} has not started"
        for key, one in found.items():
            is_used = key in pods and not gated(pods[key])
            if holds(one, "QuotaReserved") and not is_used:
                yield f"quota of {key} is idle"
        yield from _given_back(found)

    def _unlisted(self, job: Object, pods: dict[str, Object]) -> Iterator[str]:
        """Yield that not all who could train are listed, or not as many as the job may have."""
        name, listed = job["metadata"]["name"], self.cluster.listed(job["metadata"]["name"])
        could = (
            {pod for pod, item in pods.items() if running(item)}
            - {names.launcher(name)}
            - parked(job)
        )
        if not (could and running(pods.get(names.launcher(name)))):
            return  # the last host stays listed until another could train
        sizes = sizes_of(job)
        fits = (
            max((size for size in sizes if size <= len(could)), default=0) if sizes else len(could)
        )
        # A ring goes on as it is: after a loss, and where its size is allowed no longer and the
        # next cannot be had.
        if not listed <= could or (fits and len(listed) != fits and listed != could):
            yield f"{sorted(listed)} of {sorted(could)} are listed, sizes {sizes}"

    def _waiting(
        self, base: Object, found: dict[str, Object], pods: dict[str, Object]
    ) -> Iterator[str]:
        """Yield the pods that wait although there is quota for them, or do not ask for it."""
        held = [one for one in self.cluster.all(WORKLOADS) if holds(one, "QuotaReserved")]
        free = self.quota - sum(asks(one) for one in held if not holds(one, "Finished"))
        for pod, item in pods.items():
            index = names.worker_index(pod, job=owner_of(item))
            one = found.get(pod) if index is not None and index >= asks(base) - 1 else base
            if gated(item) and one is None and holds(base, "QuotaReserved"):
                yield f"{pod} asks for no quota"
            elif gated(item) and one and (holds(one, "QuotaReserved") or asks(one) <= free):
                yield f"{pod} waits beside free quota: {free} of {self.quota}"


def _given_back(found: dict[str, Object]) -> Iterator[str]:
    wanted = (
        key for key, one in found.items() if holds(one, "QuotaReserved") and holds(one, "Evicted")
    )
    yield from (f"quota of {key} is not given back" for key in wanted)


def misplaced(job: Object, pods: dict[str, Object]) -> Iterator[str]:
    """Yield that other pods hold a place than those of parked workers."""
    held = {pod for pod, item in pods.items() if holds_place(item)}
    if held != parked(job):
        yield f"{sorted(held)} are placeholders instead of {sorted(parked(job))}"


def _finished(found: dict[str, Object], pods: dict[str, Object]) -> Iterator[str]:
    yield from (
        f"{key} of a finished job" for key, one in found.items() if not holds(one, "Finished")
    )
    yield from (f"{pod} runs on" for pod, item in pods.items() if running(item))


def may_run(pod: Object) -> bool:
    """Tell whether a pod runs, or may as soon as a node takes it."""
    return not (gated(pod) or pod["status"]["phase"] in ("Succeeded", "Failed"))


def least_of(job: Object) -> int:
    """Return the least size of a job."""
    return int(job["metadata"]["annotations"].get(names.MIN_REPLICAS, 1))


def sizes_of(job: Object) -> list[int]:
    """Return the sizes that a job may have, none where it may have any."""
    text = job["metadata"]["annotations"].get(SIZES, "")
    found = (
        range(2, MOST + 1, 2) if text == "*2" else [int(size) for size in text.split(",") if size]
    )
    return [size for size in found if size >= least_of(job)]


def queue_of(job: Object) -> str:
    """Return the queue of a job."""
    queue: str = job["metadata"].get("labels", {}).get(LABEL_QUEUE, "")
    return queue


async def play(
    jobs: int,
    quota: int,
    steps: Sequence[Step],
    *,
    kind: type[History] = History,
    restarts: int = 0,
) -> list[str]:
    """Return what goes wrong in a history."""
    return await kind(jobs, quota, restarts).play(steps)


async def shrunk(
    jobs: int, quota: int, steps: Sequence[Step], *, kind: type[History], restarts: int
) -> list[Step]:
    """Return the fewest steps, one left out at a time, with which still anything goes wrong."""
    left = list(steps)
    for index in reversed(range(len(left))):
        fewer = [*left[:index], *left[index + 1 :]]
        if await play(jobs, quota, fewer, kind=kind, restarts=restarts):
            left = fewer
    return left


async def search(seeds: Iterable[int], *, kind: type[History] = History) -> list[str]:
    """Return what goes wrong in the histories of these seeds, shrunk.

    Odd seeds have three jobs, even one. In turns of six seeds elastic.sh runs none of the jobs, all,
    and every second.
    """
    found = []
    for seed in seeds:
        jobs, restarts = 3 if seed % 2 else 1, seed // 2 % 3
        quota, steps = drawn(seed, jobs=jobs, kinds=kind.KINDS)
        if await play(jobs, quota, steps, kind=kind, restarts=restarts):
            fewest = await shrunk(jobs, quota, steps, kind=kind, restarts=restarts)
            wrong = await play(jobs, quota, fewest, kind=kind, restarts=restarts)
            found.append(f"{seed}: {jobs}, {quota}, {fewest}, restarts={restarts}: {wrong[:3]}")
    return found

"""Jobs that share the quota of a queue, with doubles of Kueue, mpi-operator v0.2.3, the webhook, the kubelet and users.

The decisions are the real ones. What the caches show may be older than what is there, as for a new
leader, and any write may be the last of a controller. Writes keep their preconditions: versions,
and what is decided again on live objects (`LiveRecheck`, `Workloads.check`). All jobs are called
`j`: each decision is of one job.
"""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.capabilities.kueue.facts import Queue, Workload
from mpijob_elastic.capabilities.kueue.wishes import workload_of
from mpijob_elastic.decide import capability, decide, demand, derive, drain
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    ProbeWorkers,
    Ungate,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import When
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import JOB, NOW, but, config, job, launcher, pending, ref, role
from tests.queues import BASE, queue, workload
from tests.simulated_writes import apply

OfWorkload = (
    of_kueue.CreateWorkload
    | of_kueue.DeleteWorkload
    | of_kueue.MarkReady
    | of_kueue.FinishWorkload
    | of_kueue.ClearWorkload
)
SUSPENDED = "mpijob-elastic/suspend"
# What the writes of a Workload's status make of it; without its quota it queues again.
MARKED: dict[type[Action], dict[str, Any]] = {
    of_kueue.MarkReady: {"ready": True},
    of_kueue.FinishWorkload: {"finished": True},
    of_kueue.ClearWorkload: {
        "reserved": False,
        "admitted": False,
        "evicted": False,
        "ready": False,
        "said": "",
    },
}
# Looks at all jobs until all is at rest; each is followed by what the others do.
MOST_LOOKS = 300
# Seconds in which nothing happens; no delay of an undisturbed job is longer.
STILL = 120.0


def workloads(view: JobView) -> dict[str, Workload]:
    kueue = view.of(Kueue)
    return dict(kueue.queue.workloads) if kueue and kueue.queue else {}


def asking(view: JobView, found: dict[str, Workload]) -> JobView:
    return but(view, queue=queue(*found.values()))


def runs(pod: Launcher | Worker) -> bool:
    """Whether it uses quota: it may be scheduled, or still ends."""
    is_over = pod.phase is LauncherPhase.FINISHED if isinstance(pod, Launcher) else pod.terminated
    return not (is_over or pod.facts.gates)


def uncovered(view: JobView) -> list[str]:
    """The pods that run without quota."""
    found = Queue(workloads=workloads(view))
    using = [pod for pod in view.pods if runs(pod)]
    of = ((pod, workload_of(view, found, pod)) for pod in using)
    return [pod.ref.name for pod, one in of if one is None or not one.reserved or one.finished]


class Sharing:
    """So many jobs and so much quota, in pods; everything that happens is drawn."""

    def __init__(self, random: Random, *, jobs: int, quota: int) -> None:
        self.random, self.quota, self.now, self.count = random, quota, NOW, 0
        self.jobs = [self._job() for _ in range(jobs)]
        self.before = list(self.jobs)  # as lagging caches show them
        self.told: list[str] = []
        self.hasty = False  # jobs are stopped in the worst moment

    def _job(self) -> JobView:
        size = self.random.randint(1, 4)
        found = job(
            size,
            launcher=None,
            workers=(),
            config=config([]),
            role=role(),
            known=False,
            queue=queue(),
        )
        return but(found, policy=Policy(min_replicas=self.random.choice((None, 1, 2, 3))))

    @property
    def free(self) -> int:
        reserved = [
            one
            for view in self.jobs
            for one in workloads(view).values()
            if one.reserved and not one.finished
        ]
        return self.quota - sum(map(_cost, reserved))

    def step(self) -> None:
        """Let something happen."""
        kind = self.random.choices(
            (
                self.user,
                self.operator,
                self.kubelet,
                self.grant,
                self.preempt,
                self.trouble,
                self.look,
                self.catch_up,
            ),
            weights=(3, 4, 5, 4, 1, 1, 12, 6),
        )[0]
        kind()
        self.now += self.random.choice((0.1, 1.0, 10.0))

    def _any(self) -> int:
        return self.random.randrange(len(self.jobs))

    def stumble(self) -> None:
        """Once the jobs train, stop one just when its launcher is lost, resume it soon, and maybe stop it in haste."""
        self.rest()
        index, self.hasty = self._any(), True
        first = self.jobs[index].launcher
        if first and runs(first):
            self._set(
                index,
                but(self.jobs[index], launcher=but(first, deleting=True)),
                "the launcher is deleted of",
            )
        for _ in range(2):
            self.suspend(index)
            for _ in range(self.random.randrange(8)):
                self.round()
                self.now += 1.0

    def haste(self, index: int) -> None:
        """A job is stopped whose launcher has not been told of any host, and may have lost a worker just before."""
        first = self.jobs[index].worker(names.worker(JOB, 0))
        if first and first.running and self.random.random() < 0.7:
            self.lose(index, first)
        if self.random.random() < 0.5:
            self.preempt(index)
        elif not is_suspended(self.jobs[index]):
            self.suspend(index)

    def user(self) -> None:
        """Somebody changes a job."""
        index, draw = self._any(), self.random
        view = self.jobs[index]
        change = draw.choice(
            ("size", "size", "least", "np", "suspend", "suspend", "suspend", "suspend")
        )
        if change == "suspend":
            self.suspend(index)
            return
        if change == "size":
            view = but(view, replicas=draw.randint(1, 5))
        elif change == "least":
            view = but(view, policy=replace(view.policy, min_replicas=draw.choice((None, 1, 2, 4))))
        else:
            view = but(view, np_workers=draw.choice((0, 2, 3)))
        self._set(index, view, f"a user changes the {change} of")

    def suspend(self, index: int) -> None:
        """Somebody suspends a job, or resumes it."""
        by = None if is_suspended(self.jobs[index]) else SUSPENDED
        self._set(index, but(self.jobs[index], suspended_by=by), "a user suspends or resumes")

    def operator(self) -> None:
        """The operator makes what is missing, and the webhook puts its gates on."""
        for index, view in enumerate(self.jobs):
            if view.facts.finished:
                going = tuple(
                    one if one.facts.deleting else but(one, deleting=True) for one in view.workers
                )
                if going != view.workers:
                    self._set(
                        index, but(view, workers=going), "the operator deletes the workers of"
                    )
                continue
            gates = (names.GATE_QUEUED, *((names.GATE_SUSPENDED,) if is_suspended(view) else ()))
            there = {one.index for one in view.workers}
            missing = [one for one in range(view.replicas) if one not in there]
            new = [
                pending(one, uid=self._uid(), gates=gates, created_at=self.now) for one in missing
            ]
            workers = tuple(sorted((*view.workers, *new), key=lambda one: one.index))
            made = launcher(
                LauncherPhase.WAITING,
                ref=ref(BASE, uid=self._uid()),
                gates=gates,
                created_at=self.now,
            )
            if new or view.launcher is None:
                self._set(
                    index,
                    but(view, workers=workers, launcher=view.launcher or made),
                    "the operator makes pods of",
                )

    def _uid(self) -> str:
        self.count += 1
        return f"uid-{self.count}"

    def kubelet(self) -> None:
        """Pods that may start do so, and those that are deleted are gone."""
        for index, view in enumerate(self.jobs):
            kept = (
                one
                for one in view.workers
                if not (one.facts.deleting and self.random.random() < 0.7)
            )
            workers = tuple(
                but(one, running=True, ready_at=self.now) if runs(one) and not one.running else one
                for one in kept
            )
            first = view.launcher
            if first and first.facts.deleting:
                first = None
            elif first and runs(first):
                first = but(first, phase=self._phase(view, first))
            if (workers, first) != (view.workers, view.launcher):
                self._set(
                    index,
                    but(view, workers=workers, launcher=first),
                    "the kubelet starts or ends pods of",
                )
                starts = first != view.launcher and self.jobs[index].driver_running
                if self.hasty and starts and self.random.random() < 0.7:
                    self.haste(index)

    def _phase(self, view: JobView, first: Launcher) -> LauncherPhase:
        if first.phase is LauncherPhase.WAITING:
            return LauncherPhase.DELIVERING
        ready = {one.name for one in view.workers if one.ready}
        lines = view.config.facts.hostfile.splitlines() if view.config else []
        starts = (
            first.phase is LauncherPhase.DELIVERING
            and {line.split(" ")[0] for line in lines} <= ready
        )
        return LauncherPhase.STARTED if starts else first.phase

    def trouble(self) -> None:
        """A worker fails, or is deleted; rarely, a job ends."""
        index = self._any()
        view = self.jobs[index]
        victim = self.random.choice(view.workers) if view.workers else None
        if self.random.random() < 0.1 and view.driver_running and view.launcher:
            over = but(view.launcher, phase=LauncherPhase.FINISHED)
            self._set(
                index,
                but(view, launcher=over, finished=True, clean_pod_policy="Running"),
                "the end of",
            )
        elif victim and victim.running:
            self.lose(index, victim)

    def lose(self, index: int, victim: Worker) -> None:
        """A worker fails, or is deleted."""
        fails = self.random.random() < 0.5
        after = but(victim, terminated=True, ready_at=None) if fails else but(victim, deleting=True)
        workers = tuple(after if one is victim else one for one in self.jobs[index].workers)
        self._set(
            index,
            but(self.jobs[index], workers=workers),
            f"{victim.name} {'fails' if fails else 'is deleted'} in",
        )

    def grant(self) -> None:
        """Kueue grants quota: higher priority first, then the older."""
        waits = [
            (index, one)
            for index, view in enumerate(self.jobs)
            for one in workloads(view).values()
            if one.waits
        ]
        for index, one in sorted(
            waits, key=lambda found: (-found[1].priority, found[1].created_at)
        ):
            if _cost(one) <= self.free:
                self._mark(index, one, "Kueue grants", reserved=True, admitted=True, said="")
            else:  # each try of Kueue has other numbers, which are no event of the history
                said = f"insufficient quota for cpu in flavor spot, {self.random.randrange(9999)}m more needed"
                found = workloads(self.jobs[index])
                found[one.metadata.name] = msgspec.structs.replace(
                    found[one.metadata.name], said=said
                )
                self.jobs[index] = asking(self.jobs[index], found)

    def preempt(self, index: int | None = None) -> None:
        """Kueue wants quota back."""
        index = self._any() if index is None else index
        held = [one for one in workloads(self.jobs[index]).values() if one.granted]
        if held:
            self._mark(
                index, self.random.choice(held), "Kueue wants back", evicted=True, said="Preempted"
            )

    def catch_up(self) -> None:
        """The caches see what is there."""
        index = self._any()
        self.before[index] = self.jobs[index]

    def look(self) -> None:
        """A controller looks at a job, maybe with caches that lag, and may end before any of its writes."""
        index = self._any()
        now, old = self.jobs[index], self.before[index]
        lags = (asking(now, workloads(old)), but(now, workers=old.workers, launcher=old.launcher))
        seen = self.random.choice((now, now, *lags))
        self.act(index, seen, most=self.random.choice((0, 1, 2, 99)))

    def act(self, index: int, seen: JobView, *, most: int = 99) -> None:
        """Do what is due."""
        plan = decide(seen, now=self.now)
        for action in plan.actions[:most]:
            self._do(index, seen, action)
        for look in plan.looks:
            if isinstance(look, ProbeWorkers):
                self.jobs[index] = apply(self.jobs[index], look, now=self.now)

    def _do(self, index: int, seen: JobView, action: Action) -> None:
        """Write, unless the API server or a live look refuses it."""
        view = self.jobs[index]
        fresh = derive(asking(view, workloads(seen)), now=self.now)
        if isinstance(action, OfWorkload):
            after = _asked(view, fresh, action, now=self.now, uid=self._uid())
        else:
            after = _after(view, seen, fresh, action, now=self.now)
        if after is None:
            self.told.append(f"refused to {index}: {type(action).__name__}")
        else:
            self._set(index, after, f"the controller does {action}"[:150] + " to")

    def _mark(self, index: int, one: Workload, words: str, **facts: Any) -> None:
        found = workloads(self.jobs[index])
        found[one.metadata.name] = msgspec.structs.replace(one, **facts)
        self._set(index, asking(self.jobs[index], found), f"{words} {one.metadata.name} of")

    def _set(self, index: int, view: JobView, words: str) -> None:
        self.jobs[index] = view
        self.told.append(f"{self.now - NOW:.1f} {words} {index}")
        for at, each in enumerate(self.jobs):
            wrong = uncovered(each)
            assert not wrong, self.story(f"{wrong} of {at} run without quota")
        assert self.free >= 0, self.story("more quota is used than there is")

    def round(self) -> None:
        """Everybody does what is due, and sees what is there."""
        self.before = list(self.jobs)
        for index, view in enumerate(self.jobs):
            self.act(index, view)
        for other in (self.operator, self.kubelet, self.grant):
            other()

    def rest(self) -> None:
        """Let nothing more happen to the jobs, until all is at rest; fail if it never is."""
        changed_at, self.hasty = self.now, False
        for _ in range(MOST_LOOKS):
            told = len(self.told)
            self.round()
            if len(self.told) > told:
                changed_at = self.now
            if self.now - changed_at > STILL:
                return
            self.now += 1.0 if changed_at == self.now else 10.0
        raise AssertionError(self.story("it is never at rest"))

    def story(self, wrong: str) -> str:
        states = [f"{index}: {_said(view)}" for index, view in enumerate(self.jobs)]
        return "\n".join((wrong, *self.told[-80:], *states))


def _after(
    view: JobView, seen: JobView, fresh: JobState, action: Action, *, now: float
) -> JobView | None:
    """The job after a write; None if it is refused. fresh: with live pods, and Workloads as the caches have them."""
    match action:
        case Ungate():
            return apply(view, action, now=now) if _may_start(view, seen, action) else None
        case DeleteWorkers():
            due = {one.worker.ref.uid for one in drain.leave(fresh).removals}
            return _deleted(view, {one.worker.ref.uid for one in action.removals} & due)
        case DeleteLauncher():
            is_due = fresh.wishes.suspend if action.suspends else view.launcher == seen.launcher
            return _deleted(view, {action.launcher.ref.uid}) if is_due else None
        case _:
            return apply(view, action, now=now)


def _asked(
    view: JobView, fresh: JobState, action: OfWorkload, *, now: float, uid: str
) -> JobView | None:
    """The job after a write of a Workload; None if it is refused."""
    found = workloads(view)
    if isinstance(action, of_kueue.CreateWorkload):
        count = sum(one.count for one in action.pods if one.name == demand.WORKERS)
        owners = tuple(one.like.uid for one in action.pods)
        made = workload(
            action.name, workers=count, priority=action.priority, created_at=now, pods=owners
        )
        made = msgspec.structs.replace(
            made, metadata=msgspec.structs.replace(made.metadata, uid=uid)
        )
        return None if action.name in found else asking(view, {**found, action.name: made})
    ref_ = action.ref if isinstance(action, of_kueue.DeleteWorkload) else action.workload.metadata
    there = found.get(ref_.name)
    if (
        there is None
        or there.metadata.uid != ref_.uid
        or (action.rechecked and not _still(fresh, action))
    ):
        return None
    if isinstance(action, of_kueue.DeleteWorkload):
        return asking(view, {name: one for name, one in found.items() if one is not there})
    if isinstance(action, of_kueue.ClearWorkload) and not there.preempted:
        return None
    facts = MARKED[type(action)]
    return asking(view, {**found, ref_.name: msgspec.structs.replace(there, **facts)})


def _deleted(view: JobView, uids: set[str]) -> JobView | None:
    """The job of which these pods begin to end; None if none of them is there."""
    if not any(pod.ref.uid in uids for pod in view.pods):
        return None
    workers = tuple(but(one, deleting=True) if one.ref.uid in uids else one for one in view.workers)
    first = view.launcher
    return but(
        view,
        workers=workers,
        launcher=but(first, deleting=True) if first and first.ref.uid in uids else first,
    )


def _still(fresh: JobState, action: Action) -> bool:
    return action in [own.write for own in capability.own_writes(fresh, When.ANY_TIME)]


def _may_start(view: JobView, seen: JobView, action: Ungate) -> bool:
    """As `Workloads.check`, and the versions of the pods."""
    starting = {gated.ref.uid for gated in action.pods}
    old: dict[str, Launcher | Worker] = {
        pod.ref.uid: pod for pod in seen.pods if pod.ref.uid in starting
    }
    new = {pod.ref.uid: pod for pod in view.pods if pod.ref.uid in starting}
    if old != new:
        return False
    asked, found = Queue(workloads=workloads(seen)), workloads(view)
    needed = (workload_of(seen, asked, pod) for pod in old.values())
    return all(
        one is None or ((there := found.get(one.metadata.name)) is not None and there.granted)
        for one in needed
    )


def _said(view: JobView) -> str:
    launcher_ = view.launcher and (view.launcher.phase.value, view.launcher.facts.gates)
    workers = [
        (one.index, "runs" if one.running else one.facts.gates or one.facts.phase)
        for one in view.workers
    ]
    quota = [
        (
            one.metadata.name,
            one.workers,
            *(fact for fact in ("reserved", "evicted", "finished") if getattr(one, fact)),
        )
        for one in workloads(view).values()
    ]
    wanted = f"{view.replicas}, least {view.policy.min_replicas}, -np {view.facts.np_workers}"
    stopped = ", suspended" if is_suspended(view) else ""
    return f"replicas {wanted}{stopped}, launcher {launcher_}, workers {workers}, lists {view.published_pods}, {quota}"


def is_suspended(view: JobView) -> bool:
    return derive(but(view, queue=queue()), now=NOW).wishes.suspend is not None


def _cost(one: Workload) -> int:
    return one.workers + (one.metadata.name == BASE)

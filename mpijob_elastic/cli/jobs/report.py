"""Everything that is said of one job: what `-o json` and `-o yaml` print, and what tables are made of.

Field names are camelCase there; times are RFC 3339 in UTC, durations are seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import plan_words
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.decide import decide, drain, handover, history, launcher_refresh
from mpijob_elastic.model.job import JobView, Launcher, LauncherPhase, Worker

# The phase of a worker that is wanted and that no pod is there for.
MISSING = "Missing"
_NO_RIGHTS = "unknown: your rights do not include the launcher's Role (list, watch roles.rbac.authorization.k8s.io)"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what is printed."""


class Scale(_Part, frozen=True):
    """A change of size that was published."""

    before: int
    after: int
    at: datetime


class Draining(_Part, frozen=True):
    """Since when a worker is out of discover_hosts.sh, and when it is deleted whatever still runs in it.

    until: None while the launcher has yet to be told, for the drain-timeout begins then.
    """

    since: datetime
    until: datetime | None


class WorkerReport(_Part, frozen=True):
    """One worker, there or wanted (then its phase is Missing). last_state: how it ended, "" while it has not.

    host: its name in discover_hosts.sh, "" while it is not published; incarnation: the number in it, or the one that it
    had last.
    """

    index: int
    name: str
    phase: str
    ready: bool
    published: bool
    host: str
    incarnation: int
    draining: Draining | None
    node: str
    last_state: str


class LauncherReport(_Part, frozen=True):
    """The launcher pod. told: whether it was touched for what is published now; None while no touch would help."""

    name: str
    phase: str
    sees_discover_hosts: bool
    told: bool | None
    node: str


class JobReport(_Part, frozen=True):
    """One job.

    elastic: false, and `foreign` says why, where another operator looks after it. hosts: what discover_hosts.sh prints.
    exec_names: the pods the launcher's Role allows exec into, None where this user may not read it. next: what the
    controller's decision gives for what is seen here, in words; next_look: when it would look again without a change.
    """

    namespace: str
    name: str
    state: str
    desired: int
    ready: int
    published: int
    draining: int
    elastic: bool
    foreign: str
    slots: int
    min_replicas: int | None
    max_replicas: int | None
    drain_timeout: float
    created: datetime
    last_scale: Scale | None
    hosts: list[str]
    exec_names: list[str] | None
    launcher: LauncherReport | None
    workers: list[WorkerReport]
    notices: list[str]
    next: list[str]
    next_look: datetime | None


def build(snapshot: Snapshot, *, now: float) -> JobReport:
    """The report on a job at time `now` (seconds since the epoch)."""
    view = snapshot.view
    workers = _workers(snapshot, now=now)
    plan = decide(view, now=now)
    foreign = handover.reason(view, now=now)
    return JobReport(
        namespace=view.namespace,
        name=view.name,
        state=snapshot.state,
        desired=view.replicas,
        ready=sum(worker.ready for worker in workers),
        published=len(view.published_pods),
        draining=sum(worker.draining is not None for worker in workers),
        elastic=view.elastic and not foreign,
        foreign=foreign,
        slots=view.slots,
        min_replicas=view.policy.min_replicas,
        max_replicas=view.policy.max_replicas,
        drain_timeout=view.policy.drain_timeout,
        created=_time(snapshot.created_at),
        last_scale=_last_scale(view),
        hosts=[f"{host}:{_published_slots(view)}" for host in view.host_of.values()],
        exec_names=_exec_names(snapshot),
        launcher=_launcher(snapshot, view.launcher) if view.launcher else None,
        workers=workers,
        notices=view.notices.splitlines(),
        next=plan_words.words(view, plan) if snapshot.role_readable else [_NO_RIGHTS],
        next_look=_time(plan.wake_at) if plan.wake_at is not None else None,
    )


def _workers(snapshot: Snapshot, *, now: float) -> list[WorkerReport]:
    view = snapshot.view
    there = {worker.name: worker for worker in view.workers}
    missing = [] if view.finished else [name for name in view.wanted_names if name not in there]
    reports = [_worker(snapshot, worker, now=now) for worker in view.workers]
    reports += [_missing(snapshot, name) for name in missing]
    return sorted(reports, key=lambda report: report.index)


def _worker(snapshot: Snapshot, worker: Worker, *, now: float) -> WorkerReport:
    pod = snapshot.pods[worker.name]
    return WorkerReport(
        index=worker.index,
        name=worker.name,
        phase="Terminating" if worker.deleting else pod.facts.phase or "Pending",
        ready=worker.ready,
        published=snapshot.view.is_published(worker),
        host=snapshot.view.host_of.get(worker.name, ""),
        incarnation=_incarnation(snapshot.view, worker.name),
        draining=_draining(snapshot.view, worker, now=now),
        node=pod.node,
        last_state=worker.last_state if worker.terminated else "",
    )


def _missing(snapshot: Snapshot, name: str) -> WorkerReport:
    return WorkerReport(
        index=snapshot.view.wanted_names.index(name),
        name=name,
        phase=MISSING,
        ready=False,
        published=name in snapshot.view.host_of,
        host=snapshot.view.host_of.get(name, ""),
        incarnation=_incarnation(snapshot.view, name),
        draining=None,
        node="",
        last_state="",
    )


def _incarnation(view: JobView, pod: str) -> int:
    last = view.memory.hosts.get(pod)
    if pod in view.host_of or last is None:
        return names.incarnation_of(view.host_of.get(pod, ""))
    return last.incarnation


def _draining(view: JobView, worker: Worker, *, now: float) -> Draining | None:
    left = history.left(view, worker, now=now)
    is_leaving = view.elastic and worker.index >= view.replicas and worker.name not in view.published_pods
    if not is_leaving or left is None:
        return None
    began = drain.drain_began(view, left, now=now)
    until = None if began is None else _time(began + view.policy.drain_timeout)
    return Draining(since=_time(left.at), until=until)


def _launcher(snapshot: Snapshot, launcher: Launcher) -> LauncherReport:
    pod = snapshot.pods[launcher.ref.name]
    return LauncherReport(
        name=launcher.ref.name,
        phase=_phase(launcher, pod.facts.phase),
        sees_discover_hosts=launcher.mounts_discovery,
        told=_told(snapshot.view),
        node=pod.node,
    )


def _told(view: JobView) -> bool | None:
    return launcher_refresh.is_shown(view) if launcher_refresh.can_show(view) else None


def _phase(launcher: Launcher, pod_phase: str) -> str:
    if launcher.deleting:
        return "Terminating"
    return "Init" if launcher.phase is LauncherPhase.DELIVERING else pod_phase or "Pending"


def _published_slots(view: JobView) -> int:
    published = view.config.published if view.config else None
    return published.slots if published else view.slots


def _exec_names(snapshot: Snapshot) -> list[str] | None:
    if not snapshot.role_readable:
        return None
    return list(snapshot.view.role.exec_names) if snapshot.view.role else []


def _last_scale(view: JobView) -> Scale | None:
    scale = view.memory.scale
    # The first hosts of a new job are no change of its size.
    return Scale(before=scale.before, after=scale.after, at=_time(scale.at)) if scale and scale.before else None


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

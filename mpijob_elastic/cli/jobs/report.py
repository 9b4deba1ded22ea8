"""Build the report on one job: `-o json` and `-o yaml` print it, and tables are made of it.

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

# The phase of a wanted worker without a pod.
MISSING = "Missing"
_NO_RIGHTS = "unknown: you lack the right to read the launcher's Role (list, watch roles.rbac.authorization.k8s.io)"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the parts of a report."""


class Scale(_Part, frozen=True):
    """A published change of the size."""

    before: int
    after: int
    at: datetime


class Draining(_Part, frozen=True):
    """When a worker left discover_hosts.sh, and when it is deleted even if a rank still runs in it.

    until: None until the launcher is refreshed, because the drain-timeout begins then.
    """

    since: datetime
    until: datetime | None


class WorkerReport(_Part, frozen=True):
    """One worker, present or only wanted (then its phase is Missing). last_state: how it ended, "" before that.

    host: its name in discover_hosts.sh, "" while it is not published; incarnation: the number in its host name, or in
    its last host name.
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
    """The launcher pod. refreshed: it was touched for the published list; None while no touch would help."""

    name: str
    phase: str
    sees_discover_hosts: bool
    refreshed: bool | None
    node: str


class JobReport(_Part, frozen=True):
    """One job.

    elastic: false where another operator manages it; `foreign` says why. hosts: the lines of discover_hosts.sh.
    exec_names: the pods that the launcher's Role allows exec into, None where this user may not read it. next: what the
    controller does next, in words; next_look: when it checks the job again without a change.
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
    """Return the report on a job at time `now` (seconds since the epoch)."""
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
    indices = {worker.index for worker in view.workers}
    wanted = set() if view.finished else {names.worker_index(name, job=view.name) or 0 for name in view.wanted_names}
    return [_worker(snapshot, index, now=now) for index in sorted(indices | wanted)]


def _worker(snapshot: Snapshot, index: int, *, now: float) -> WorkerReport:
    view, name = snapshot.view, names.worker(snapshot.view.name, index)
    worker, pod = view.worker(name), snapshot.pods.get(name)
    phase = (pod.facts.phase or "Pending") if pod else MISSING
    return WorkerReport(
        index=index,
        name=name,
        phase="Terminating" if worker and worker.deleting else phase,
        ready=bool(worker and worker.ready),
        published=name in view.host_of,
        host=view.host_of.get(name, ""),
        incarnation=_incarnation(view, name),
        draining=_draining(view, worker, now=now) if worker else None,
        node=pod.node if pod else "",
        last_state=worker.last_state if worker and worker.terminated else "",
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
    view, pod = snapshot.view, snapshot.pods[launcher.ref.name]
    return LauncherReport(
        name=launcher.ref.name,
        phase=_phase(launcher, pod.facts.phase),
        sees_discover_hosts=launcher.mounts_discovery,
        refreshed=launcher_refresh.is_shown(view) if launcher_refresh.can_show(view) else None,
        node=pod.node,
    )


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

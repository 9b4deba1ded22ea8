"""Build the report on one job. `-o json` and `-o yaml` print the report; tables are made from it.

Field names are camelCase in JSON and YAML; times are RFC 3339 in UTC, durations are seconds.
"""

from datetime import UTC, datetime
from itertools import islice

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import progress_report
from mpijob_elastic.cli.jobs.progress_report import GoodputReport, ProgressReport
from mpijob_elastic.cli.jobs.snapshot import SeenPod, Snapshot, cannot_show
from mpijob_elastic.decide import derive, in_words, plan
from mpijob_elastic.decide.shown import first_word, shown_of
from mpijob_elastic.decide.state import Drain, JobState
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Worker

# The phase of a wanted worker without a pod.
MISSING = "Missing"
# The state of a job whose objects cannot be shown.
UNREADABLE = "Unreadable"


class _ReportPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the parts of a report."""


class ScaleReport(_ReportPart, frozen=True):
    """A published change of the size."""

    before: int
    after: int
    at: datetime


class Draining(_ReportPart, frozen=True):
    """The drain of a worker."""

    #: When the worker left discover_hosts.sh.
    since: datetime
    #: When the worker is deleted even if a rank still runs in it. None until the launcher is
    #: refreshed, because the drain-timeout begins then.
    until: datetime | None


class QueueReport(_ReportPart, frozen=True):
    """The queue of the job."""

    name: str
    #: The object of the job that waits in the queue next, "" if no object waits.
    workload: str = ""
    #: The place of `workload` in the queue, 1 for the next; None where the place is unknown.
    place: int | None = None
    #: Why `workload` waits, in the queue's words.
    says: str = ""


class WorkerReport(_ReportPart, frozen=True, kw_only=True):
    """One worker, present or only wanted."""

    index: int
    name: str
    #: Missing if the worker is wanted but has no pod.
    phase: str = MISSING
    ready: bool = False
    published: bool
    #: The worker's name in discover_hosts.sh, "" while the worker is not published.
    host: str
    #: The number in the host name, or in the last host name while the worker is not published.
    incarnation: int
    draining: Draining | None = None
    node: str = ""
    #: None while there is no pod.
    created: datetime | None = None
    #: None while there is no pod, or the pod is not Ready.
    ready_since: datetime | None = None
    #: How the worker ended, "" before its end.
    last_state: str = ""
    #: In a queue: whether the worker is one of the least workers or an extra worker; "wanted back"
    #: if the queue wants the quota back; "none" if the worker runs without quota.
    quota: str = ""


class LauncherReport(_ReportPart, frozen=True):
    """The launcher pod."""

    name: str
    phase: str
    #: The launcher mounts discover_hosts.sh.
    sees_discover_hosts: bool
    #: The launcher was touched for the published list; None while a touch would not help.
    refreshed: bool | None
    node: str
    created: datetime | None = None


class JobReport(_ReportPart, frozen=True):
    """One job."""

    namespace: str
    name: str
    state: str
    #: What is under way, "" at rest.
    phase: str
    #: The size, in workers; None where the MPIJob does not say its size.
    desired: int | None
    ready: int
    published: int
    draining: int
    #: False also where another operator manages the job.
    elastic: bool
    #: Why another operator manages the job, "" if none does.
    foreign: str
    #: Slots per worker.
    slots: int
    min_replicas: int | None
    max_replicas: int | None
    #: Seconds.
    drain_timeout: float
    created: datetime
    last_scale: ScaleReport | None
    #: The hosts of discover_hosts.sh, each with its slots.
    hosts: list[str]
    #: The last line of discover_hosts.sh if it is a reminder, which is no host; "" otherwise.
    reminder: str
    #: The pods into which the launcher's Role allows exec, None where this user may not read the
    #: Role.
    exec_names: list[str] | None
    launcher: LauncherReport | None
    workers: list[WorkerReport]
    notices: list[str]
    #: What the controller does next, in words.
    next: list[str]
    #: When the controller checks the job again without a change.
    next_look: datetime | None
    #: None unless the job is in a queue and this user may read the objects that show the queue.
    queue: QueueReport | None = None
    #: The numbers of the workers that the job does without.
    parked: list[int] = []
    #: GPUs and other whole accelerators that all wanted workers ask for together.
    gpus: int = 0
    #: Those of the workers that have a node and have not ended.
    gpus_held: int = 0
    #: Slices of GPUs that all wanted workers ask for together, by the names of their resources;
    #: they are not in `gpus`.
    slices: dict[str, int] = {}
    #: Those of the workers that have a node and have not ended.
    slices_held: dict[str, int] = {}
    #: The PriorityClass of the workers.
    priority: str = ""
    #: None unless the job has ended.
    ended: datetime | None = None
    #: The job can change its size only after a restart (`upgrade adopt`), because its running
    #: launcher has no discover_hosts.sh.
    needs_restart: bool = False
    #: The context of the kubeconfig, "" where the user names no context.
    context: str = ""
    #: None where no line of progress is known.
    progress: ProgressReport | None = None
    #: None where nobody knows, and in lists: only the page of a job looks into all its workers.
    goodput: GoodputReport | None = None
    #: Workers above which no more ranks start (--max-np); None if the command does not say.
    max_np_workers: int | None = None


def shown(snapshot: Snapshot, *, now: float) -> JobReport:
    """Return the report on a job; if there can be none, a report that says why.

    One job must not end the list for all others, whatever its objects hold.
    """
    if snapshot.fault:
        return _faulty(snapshot, snapshot.fault)
    try:
        return build(snapshot, now=now)
    except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this job alone
        return _faulty(snapshot, cannot_show(error))


def _faulty(snapshot: Snapshot, fault: str) -> JobReport:
    metadata = snapshot.job.metadata
    return JobReport(
        namespace=metadata.namespace,
        name=metadata.name,
        state=UNREADABLE,
        phase="",
        desired=None,
        ready=0,
        published=0,
        draining=0,
        elastic=False,
        foreign="",
        slots=0,
        min_replicas=None,
        max_replicas=None,
        drain_timeout=0.0,
        created=_time(snapshot.job.facts.created_at),
        last_scale=None,
        hosts=[],
        reminder="",
        exec_names=None,
        launcher=None,
        workers=[],
        notices=[f"{UNREADABLE}: {fault}"],
        next=[],
        next_look=None,
    )


def build(snapshot: Snapshot, *, now: float) -> JobReport:
    """Return the report on a job at time `now`, in seconds since the epoch."""
    view = snapshot.view
    state = derive(view, now=now)
    due = plan(state)
    workers = [_worker(snapshot, state, index) for index in _shown_workers(view)]
    asked = view.facts.devices.times(view.replicas)
    held = view.facts.devices.times(_held_nodes(view))
    progress, goodput = _trained(snapshot, now=now)
    return JobReport(
        namespace=view.namespace,
        name=view.name,
        state=snapshot.job.state,
        phase=state.phase,
        desired=view.replicas if view.facts.size_known else None,
        ready=sum(worker.ready for worker in workers),
        published=len(view.published_pods),
        draining=sum(worker.draining is not None for worker in workers),
        elastic=view.elastic and not state.foreign,
        foreign=state.foreign,
        slots=view.facts.slots,
        min_replicas=view.policy.min_replicas,
        max_replicas=view.policy.max_replicas,
        drain_timeout=view.policy.drain_timeout,
        created=_time(snapshot.job.facts.created_at),
        last_scale=_last_scale(view),
        hosts=_hosts(view),
        reminder=_reminder(view),
        exec_names=_exec_names(snapshot),
        launcher=_launcher(snapshot, view.launcher, state) if view.launcher else None,
        workers=workers,
        notices=view.facts.notices.splitlines(),
        next=in_words(state, due),
        next_look=_time_or_none(due.wake_at),
        queue=_queue(state),
        parked=sorted(view.facts.skips),
        gpus=asked.whole,
        gpus_held=held.whole,
        slices=dict(asked.slices),
        slices_held=dict(held.slices),
        priority=snapshot.job.priority,
        ended=_time_or_none(view.facts.ended_at),
        needs_restart=_needs_restart(view) and not state.foreign,
        progress=progress,
        goodput=goodput,
        max_np_workers=view.facts.max_np_workers or None,
    )


def _trained(
    snapshot: Snapshot, *, now: float
) -> tuple[ProgressReport | None, GoodputReport | None]:
    """Return `JobReport.progress` and `goodput`."""
    if snapshot.lines is None:
        return None, None
    return progress_report.of(snapshot.view, snapshot.lines, now=now)


def _shown_workers(view: JobView) -> list[int]:
    """Return the indices of the workers that are there, and of those that the size asks for."""
    wanted = () if view.facts.finished else islice(view.wanted, len(view.wanted_names))
    return sorted({*wanted, *(pod.index for pod in view.workers)})


def _exec_names(snapshot: Snapshot) -> list[str] | None:
    """Return `JobReport.exec_names`."""
    if not snapshot.role_readable:
        return None
    role = snapshot.view.role
    return list(role.exec_names) if role else []


def _queue(state: JobState) -> QueueReport | None:
    """Return what the first capability says that knows the job's queue."""
    for shown in shown_of(state.view):
        if turn := shown.turn(state):
            return QueueReport(turn.queue, turn.waiting, turn.place, turn.says)
    return None


def _held_nodes(view: JobView) -> int:
    """Return the number of workers that have a node and have not ended."""
    return sum(bool(pod.facts.node) and not pod.terminated for pod in view.workers)


def _needs_restart(view: JobView) -> bool:
    """Tell whether a job is elastic for its next launcher, and not for the running one."""
    wants = view.elastic or view.facts.elastic
    has_list = view.launcher is not None and view.launcher.facts.mounts_discovery
    return wants and view.driver_running and not (has_list or view.facts.finished)


def _worker(snapshot: Snapshot, state: JobState, index: int) -> WorkerReport:
    view, name = snapshot.view, names.worker(snapshot.view.name, index)
    host, last = view.host_of.get(name, ""), view.memory.hosts.get(name)
    report = WorkerReport(
        index=index,
        name=name,
        published=bool(host),
        host=host,
        incarnation=last.incarnation if last and not host else names.incarnation_of(host),
    )
    worker = state.by_name.get(name)
    if worker is None:
        return report
    pod, seen = worker.pod, snapshot.pods[name]
    return msgspec.structs.replace(
        report,
        phase=_phase(state, pod, seen),
        ready=worker.ready,
        draining=_draining(worker.drain)
        if worker.drain and view.elastic and not worker.wanted
        else None,
        node=seen.facts.node,
        created=_created(seen),
        ready_since=_time_or_none(seen.facts.ready_at),
        last_state=pod.facts.last_state if pod.terminated else "",
        quota=first_word(one.pod_words(view, pod).quota for one in shown_of(view)),
    )


def _phase(state: JobState, pod: Worker | Launcher, seen: SeenPod) -> str:
    if pod.facts.deleting:
        return "Terminating"
    if isinstance(pod, Launcher) and pod.phase is LauncherPhase.DELIVERING:
        return "Init"
    word = first_word(one.pod_words(state.view, pod).phase for one in shown_of(state.view))
    return word or seen.facts.phase or "Pending"


def _draining(drain: Drain) -> Draining:
    return Draining(since=_time(drain.since), until=_time_or_none(drain.deadline))


def _launcher(snapshot: Snapshot, launcher: Launcher, state: JobState) -> LauncherReport:
    pod, known = snapshot.pods[launcher.ref.name], state.launcher
    return LauncherReport(
        name=launcher.ref.name,
        phase=_phase(state, launcher, pod),
        sees_discover_hosts=launcher.facts.mounts_discovery,
        refreshed=not known.refresh_due if known.can_be_shown else None,
        node=pod.facts.node,
        created=_created(pod),
    )


def _created(pod: SeenPod) -> datetime | None:
    return _time(pod.facts.created_at) if pod.facts.created_at else None


def _hosts(view: JobView) -> list[str]:
    """Return the lines of discover_hosts.sh that name a host."""
    published = view.config.published if view.config else None
    return [f"{host}:{published.slots}" for host in published.hosts] if published else []


def _reminder(view: JobView) -> str:
    """Return the line of discover_hosts.sh that has no slots; "" without one."""
    published = view.config.published if view.config else None
    return f"{published.reminder}:0" if published and published.reminder else ""


def _last_scale(view: JobView) -> ScaleReport | None:
    scale = view.memory.scale
    # The first hosts of a new job do not count as a change of size.
    return (
        ScaleReport(before=scale.before, after=scale.after, at=_time(scale.at))
        if scale and scale.before
        else None
    )


def _time_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else _time(seconds)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

"""Workloads of a job that asks Kueue for quota: which to make, clear and delete, and which pods may start.

The base comes first. Once it is granted, each worker beyond it asks for itself, with a priority that falls with its
index: below every base of the same class, so that idle quota is for extras, and the highest extra goes first.
Quota that Kueue wants back stays reserved until it is cleared, which is when nothing runs any more for which it was
meant. So no rank is killed, and nobody else starts in its place before it has gone.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import multikueue
from mpijob_elastic.decide.actions import (
    ClearWorkload,
    CreateWorkload,
    DeleteWorkload,
    FinishWorkload,
    Gated,
    MarkReady,
    Note,
    PodSet,
    QueueAction,
    StartPods,
    normal,
    warning,
)
from mpijob_elastic.kube.resources import WORKLOADS
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Worker
from mpijob_elastic.model.queue import LAUNCHER, WORKERS, Queue, Workload

# Seconds that a pod which missed the queue is left alone: Kueue may admit it, or the scheduler find a node.
MISSED_AFTER = 5.0


def due(view: JobView) -> Iterator[QueueAction]:
    """Yield the writes that are due now."""
    queue = view.queue
    if queue is None or view.facts.deleting:
        return
    base, workloads = queue.base(view.name), queue.workloads.values()
    instead = multikueue.due(view.ref, queue, base)
    if view.facts.finished and not instead:
        yield from _finished(view)
    elif instead is not None:
        yield from instead
    elif not queue.name or (base and _is_stale(view, queue, base)):
        yield from (DeleteWorkload(ref=found.metadata) for found in workloads)
    elif view.suspended_by:
        if all(pod.facts.gates for pod in view.pods):  # nothing runs
            cleared = [ClearWorkload(workload=base)] if base and base.preempted else []
            yield from cleared
            kept = base if cleared or queue.prebuilt else None  # without MultiKueue's own it would send the job again
            yield from (DeleteWorkload(ref=found.metadata) for found in workloads if found is not kept)
    elif base is None:
        yield from _base(view)
    else:
        if base.granted:
            yield from _starts(view, base)
        if base.granted and not base.ready and _runs(view, base):
            yield MarkReady(workload=base)
        yield from _extras(view, base)
        yield from _given_back(view, base)


def workload_of(view: JobView, pod: Launcher | Worker) -> Workload | None:
    """Return the Workload that asks for a pod's quota; None if there is none."""
    base = _base_of(view)
    if view.queue is None or base is None:
        return None
    is_extra = isinstance(pod, Worker) and pod.index >= base.workers
    return view.queue.workloads.get(pod.ref.name) if is_extra else base


def waiting(view: JobView) -> Workload | None:
    """Return the next Workload of the job that waits in a queue, or None."""
    base = _base_of(view)
    if base is None or base.waits:
        return base
    asked = (workload_of(view, worker) for worker in view.workers)
    return next((found for found in asked if found and found.waits), None)


def quota(view: JobView, pod: Launcher | Worker) -> str:
    """Return a word for a pod's quota: least, extra, wanted back, or none if it runs without; "" if none is asked."""
    found = workload_of(view, pod)
    if found is None:
        return ""
    if _is_outside(view, pod):
        return "none"
    if found.preempted and not _waits(pod):
        return "wanted back"
    return "least" if found is _base_of(view) else "extra"


def is_taken_back(view: JobView, worker: Worker) -> bool:
    """Tell whether Kueue wants the quota back with which an extra runs."""
    found = workload_of(view, worker)
    return found is not None and found.preempted and found is not _base_of(view) and not _waits(worker)


def missed_queue(view: JobView, pod: Launcher | Worker) -> bool:
    """Tell whether a pod should wait for quota and does not, but no node has taken it: its successor can wait."""
    return bool(view.queue and view.queue.name and _is_outside(view, pod) and not (pod.facts.node or view.suspended_by))


def pod_sets(view: JobView, *, workers: int) -> tuple[PodSet, ...]:
    """Return what a launcher and so many workers need; nothing until there are pods from which that can be told."""
    launcher, first = view.launcher, view.worker(names.worker(view.name, 0))
    if launcher is None or (first is None and workers):
        return ()
    asked = PodSet(name=LAUNCHER, count=1, like=launcher.ref)
    return (asked, PodSet(name=WORKERS, count=workers, like=first.ref)) if first and workers else (asked,)


def ending(view: JobView) -> list[Launcher | Worker]:
    """Return the pods of a finished job that still run; none where its owner wants workers to stay, maybe for ever."""
    stays = view.facts.clean_pod_policy not in ("Running", "All")
    return [] if stays else [pod for pod in view.pods if _runs_on(pod)]


def notes(view: JobView) -> Iterator[Note]:
    """Yield what the job waits for, in Kueue's words."""
    base = _base_of(view)
    if view.queue and view.queue.ignored:
        why = f"the cluster does not serve {WORKLOADS.api_version}: Kueue is not installed, or older than 0.15"
        yield warning("QueueIgnored", f"{view.name} starts without quota of queue {view.queue.ignored}, because {why}")
    if view.queue is None or not view.queue.name or base is None:
        return
    if base.queue != view.queue.name and base.reserved:
        message = f"{view.name} keeps its quota of queue {base.queue}; {view.queue.name} holds for the next job"
        yield normal("QueueUnchanged", message)
    if note := _unchanged(view, base):
        yield note
    if base.preempted and not view.suspended_by:
        yield _stays(view.name, base)
    elif not base.reserved and base.said:
        yield normal("Queued", f"{view.name} waits in queue {base.queue}{_said(base)}")
    if outside := [pod.ref.name for pod in view.pods if _is_outside(view, pod)]:
        why = "created while the webhook was away, or before the job had its label"
        yield warning("OutsideQuota", f"{listed(outside)} running without quota of queue {base.queue}: {why}")
    pairs = [(worker, workload_of(view, worker)) for worker in view.workers if _is_extra(view, base, worker)]
    waiting = [
        (worker, found) for worker, found in pairs if found and not found.reserved and found.said and _waits(worker)
    ]
    if base.granted and waiting:
        pods = listed(worker.ref.name for worker, _ in waiting)
        yield normal("WorkersQueued", f"{pods} waiting in queue {base.queue}{_said(waiting[0][1])}")
    if taken := [(worker, found) for worker, found in pairs if found and is_taken_back(view, worker)]:
        yield _wanted(view, listed(worker.ref.name for worker, _ in taken), taken[0][1])


def no_class(view: JobView, name: str) -> Note:
    """Return the Event on a priority class that does not exist."""
    return warning("PriorityClassMissing", f"{view.name} is not queued: WorkloadPriorityClass {name} does not exist")


def _stays(whose: str, found: Workload) -> Note:
    return warning("QuotaWanted", f"Kueue wants the quota of {whose} for others{_said(found)}")


def _wanted(view: JobView, workers: str, found: Workload) -> Note:
    if not view.elastic:
        return _stays(workers, found)
    return normal("QuotaWanted", f"{workers} leaving: Kueue wants the quota for others{_said(found)}")


def _base(view: JobView) -> Iterator[CreateWorkload]:
    """Yield the base, once there are pods from which it can be told what they need.

    Pods that run already, because the webhook was away or the label is new, ask as well, and go on meanwhile.
    """
    queue, pods = view.queue, pod_sets(view, workers=_asked(view))
    if queue and pods:
        name = names.launcher(view.name)
        yield CreateWorkload(name=name, queue=queue.name, priority_class=queue.priority_class, pods=pods)


def _finished(view: JobView) -> Iterator[FinishWorkload]:
    """Yield the Workloads whose pods have ended."""
    used = [workload_of(view, pod) for pod in ending(view)]
    for found in view.queue.workloads.values() if view.queue else ():
        if not found.finished and found not in used:
            yield FinishWorkload(workload=found)


def _runs_on(pod: Launcher | Worker) -> bool:
    is_over = pod.phase is LauncherPhase.FINISHED if isinstance(pod, Launcher) else pod.terminated
    return not (is_over or pod.facts.gates)


def _starts(view: JobView, base: Workload) -> Iterator[StartPods]:
    """Yield the pods that may start, those with the same flavors together."""
    together: dict[tuple[str, ...], list[Launcher | Worker]] = {}
    for pod in view.pods:
        found = workload_of(view, pod)
        if found and found.granted and _waits(pod) and not pod.facts.deleting:
            flavors = found.flavors.get(WORKERS if isinstance(pod, Worker) else LAUNCHER, ())
            together.setdefault(flavors, []).append(pod)
    for flavors, pods in together.items():
        started = listed(pod.ref.name for pod in pods)
        note = normal("Admitted", f"{started} may be scheduled: queue {base.queue} has admitted them")
        gated = (
            Gated(ref=pod.ref, kept=tuple(gate for gate in pod.facts.gates if gate != names.GATE_QUEUED))
            for pod in pods
        )
        yield StartPods(pods=tuple(gated), flavors=flavors, note=note)


def _extras(view: JobView, base: Workload) -> Iterator[QueueAction]:
    """Yield what is due for workers beyond the base, lowest index first."""
    workloads = view.queue.workloads if view.queue else {}
    for worker in view.workers:
        if not _is_extra(view, base, worker) or worker.facts.deleting:
            continue
        found = workloads.get(worker.ref.name)
        if found is None and base.granted:
            below = worker.index - base.workers + 1
            pods = (PodSet(name=WORKERS, count=1, like=worker.ref),)
            yield CreateWorkload(name=worker.ref.name, queue=base.queue, priority=base.priority - below, pods=pods)
        elif found and found.granted and not found.ready and worker.ready:
            yield MarkReady(workload=found)


def _given_back(view: JobView, base: Workload) -> Iterator[QueueAction]:
    """Yield what is due for extras whose worker has gone, or waits, and for a base of which nothing runs."""
    if base.preempted and not view.facts.elastic and all(pod.facts.gates for pod in view.pods):  # else it is suspended
        yield ClearWorkload(workload=base)
    for name, found in view.queue.workloads.items() if view.queue else ():
        index = names.worker_index(name, job=view.name)
        is_covered = index is not None and index < base.workers  # the base asks for it as well, and may wait for it
        pod = None if is_covered else view.worker(name)
        if found is base or (pod is not None and not _waits(pod)):
            continue
        is_over = index is None or is_covered or index >= view.replicas
        if not base.reserved or (is_over and pod is None):
            yield DeleteWorkload(ref=found.metadata)
        elif found.preempted and not is_over:
            yield ClearWorkload(workload=found)


def _is_stale(view: JobView, queue: Queue, base: Workload) -> bool:
    """Tell whether a base without quota asks for another queue or size than the job does now."""
    if base.reserved or base.queue != queue.name:
        return not base.reserved
    return base.waits and base.workers != _asked(view) and not queue.prebuilt


def _asked(view: JobView) -> int:
    """Return how many workers a base of now asks for: the least size, or all where none can leave."""
    if not view.elastic:
        return view.replicas
    least = policy.startup_workers(view.policy, np_workers=view.facts.np_workers)
    return view.replicas if least is None else min(view.replicas, max(least, view.facts.min_np_workers))


def _unchanged(view: JobView, base: Workload) -> Note | None:
    """Return the notice on a least size that is not that of the quota; without min-replicas only on a smaller one."""
    least = _asked(view) if view.policy.min_replicas else min(view.replicas, base.workers)
    is_kept = base.granted and view.facts.elastic and not (view.suspended_by or (view.queue and view.queue.prebuilt))
    if not is_kept or least == base.workers:
        return None
    risk = ": Kueue may take back those above" if least > base.workers else ""
    kept = f"{view.name} keeps its quota for {base.workers} workers as the least size, which is {least} now"
    return normal("LeastUnchanged", f"{kept}{risk}; to ask again, suspend and resume the job")


def _base_of(view: JobView) -> Workload | None:
    return view.queue.base(view.name) if view.queue else None


def _is_extra(view: JobView, base: Workload, worker: Worker) -> bool:
    return base.workers <= worker.index < view.replicas


def _runs(view: JobView, base: Workload) -> bool:
    started = view.launcher is not None and view.launcher.phase is LauncherPhase.STARTED
    least = min(base.workers, view.replicas)
    return started and sum(worker.ready for worker in view.workers if worker.index < least) >= least


def _is_outside(view: JobView, pod: Launcher | Worker) -> bool:
    found = workload_of(view, pod)
    return found is not None and not found.reserved and bool(found.said) and not (pod.facts.gates or pod.facts.deleting)


def _waits(pod: Launcher | Worker) -> bool:
    return names.GATE_QUEUED in pod.facts.gates


def _said(workload: Workload) -> str:
    return f": {workload.line}" if workload.said else ""

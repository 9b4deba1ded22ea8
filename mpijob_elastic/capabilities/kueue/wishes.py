"""Workloads of a job that asks Kueue for quota: which to create, clear and delete.

Quota also decides which pods may start.

The base comes first. Once it is granted, each worker beyond it asks for itself, with a priority
that falls with the worker's index: below every base of the same class, so that idle quota is for
extras, and the highest extra goes first. Quota that Kueue wants back stays reserved until we clear
it, which is when nothing runs any more for which the quota was meant. So no rank is killed, and
nobody else starts in a worker's place before the worker has gone.

MultiKueue (https://kueue.sigs.k8s.io/docs/concepts/multikueue/) has another cluster run a job. In
the manager the job has spec.managedBy, its pods wait for ever, and only its first Workload counts.
When a cluster is chosen, MultiKueue makes a copy of that Workload there, which has no owner, and
then a copy of the job, which names the Workload. It copies the status back, and never looks at the
specs again.
"""

from collections.abc import Iterable, Iterator, Sequence

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue import topology
from mpijob_elastic.capabilities.kueue.actions import (
    AdoptWorkload,
    ClearWorkload,
    CreateWorkload,
    DeleteWorkload,
    FinishWorkload,
    MarkReady,
)
from mpijob_elastic.capabilities.kueue.facts import MULTIKUEUE, Asked, Queue, Workload
from mpijob_elastic.capabilities.kueue.topology import Domain
from mpijob_elastic.decide import demand
from mpijob_elastic.decide.actions import Action, PodSet, normal
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.decide.wishes import (
    Hold,
    Keep,
    Leave,
    LeaveKind,
    Manage,
    Place,
    Ration,
    Relaunch,
    Suspend,
    Wish,
)
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import NOT_STARTED, Launcher, Worker

# Seconds that a pod which missed the queue is left alone: Kueue may admit it, or the scheduler find
# a node.
MISSED_AFTER = 5.0
# The author of these wishes; also the cause in the history for which a worker gives quota back.
AUTHOR = "Kueue"
UNANSWERED = "Kueue has not answered, so check that it runs"
WANTED_BACK = "Kueue wants its quota back"


def of(view: JobView, queue: Queue | None, *, now: float) -> Iterator[Wish]:
    """Yield the wishes that follow from the job's quota."""
    asked = view.facts.of(Asked) or Asked()
    is_elsewhere = queue.elsewhere if queue else asked.elsewhere
    if queue is None or is_elsewhere:
        why = "it is not known whether it waits for quota"
        for pod in view.pods:
            if asked.queue or names.GATE_QUEUED in pod.facts.gates:
                yield Hold(by=AUTHOR, pod=pod.ref.name, why=why)
    if is_elsewhere:
        yield _elsewhere(view, queue)
        return
    if queue is None:
        yield Ration(by=AUTHOR, controller=_named(asked.queue), known=False)
        return
    if queue.prebuilt:
        # MultiKueue deletes the job once it knows its end, and sends a job again that is gone
        yield Keep(by=AUTHOR)
    if queue.name:
        yield Ration(by=AUTHOR, controller=_named(queue.name))
        yield from _at_the_gate(view, queue, now=now)
    if queue.workloads:
        yield from _wanted_back(view, queue, now=now)


def _elsewhere(view: JobView, queue: Queue | None) -> Manage:
    """Return the wish that leaves the job to another cluster, with a notice if that is known."""
    why = f"its spec.managedBy is {MULTIKUEUE}, so it runs in another cluster; edit it there"
    if queue is None:
        return Manage(by=AUTHOR, why=why, note=None)
    base = queue.base(view.name)
    where = (
        f"cluster {base.cluster}"
        if base and base.cluster
        else "the cluster that MultiKueue will choose"
    )
    said = f" ({base.line})" if base and base.said and not base.reserved else ""
    told = f"{view.name} runs in {where}{said}; edit it there, because no edit here is passed on"
    return Manage(by=AUTHOR, why=why, note=normal("RunsElsewhere", told))


def _named(queue: str) -> str:
    return f"queue {queue} of Kueue" if queue else ""


def due(state: JobState, queue: Queue) -> Iterable[Action]:
    """Return the writes that are due now."""
    view = state.view
    if view.facts.deleting:
        return ()
    base = queue.base(view.name)
    instead = _of_multikueue(view, queue, base)
    if view.facts.finished and not instead:
        return _finished(view, queue)
    if instead is not None:
        return instead
    return _of_queue(state, queue, base)


def _of_queue(state: JobState, queue: Queue, base: Workload | None) -> Iterable[Action]:
    """Return the writes that are due for a queue of this cluster."""
    view = state.view
    if not queue.name or (base and _is_stale(view, queue, base)):
        return _deletions(queue.workloads.values())
    # Somebody has taken the job's end back, and a finished Workload is never granted again.
    if over := _over(queue, base):
        return _deletions(over)
    if state.wishes.suspend:
        return _suspended(view, queue, base)
    if base is None:
        return _asking(view, queue)
    return _running(view, queue, base)


def _deletions(workloads: Iterable[Workload]) -> list[Action]:
    return [DeleteWorkload(ref=found.metadata) for found in workloads]


def _over(queue: Queue, base: Workload | None) -> list[Workload]:
    """Return the finished Workloads, without the one that MultiKueue made."""
    finished = [found for found in queue.workloads.values() if found.finished]
    if queue.prebuilt:
        return [found for found in finished if found is not base]
    return finished


def _suspended(view: JobView, queue: Queue, base: Workload | None) -> list[Action]:
    """Return the writes that give the quota of a suspended job back, once nothing runs."""
    if not demand.nothing_runs(view):
        return []
    cleared: list[Action] = []
    if base and base.preempted:
        cleared.append(ClearWorkload(workload=base))
    # MultiKueue sends a job again whose Workload is gone.
    kept = base if cleared or queue.prebuilt else None
    gone = [found for found in queue.workloads.values() if found is not kept]
    return [*cleared, *_deletions(gone)]


def _asking(view: JobView, queue: Queue) -> list[Action]:
    """Return the request of quota for a job that has none.

    Pods that run already, because the webhook was away or the label is new, ask for quota as well,
    and go on meanwhile.
    """
    pods = demand.pod_sets(view, workers=asked(view))
    if not pods:
        return []
    of_job = view.facts.of(Asked) or Asked()
    return [
        CreateWorkload(
            name=names.launcher(view.name),
            queue=queue.name,
            priority_class=of_job.priority_class,
            pods=pods,
        )
    ]


def _running(view: JobView, queue: Queue, base: Workload) -> Iterator[Action]:
    """Yield the writes for a job that has asked for its quota."""
    yield from _started(view, base)
    yield from _owned(view, queue, base)
    yield from _extras(view, queue, base)
    yield from _given_back(view, queue, base)


def _of_multikueue(view: JobView, queue: Queue, base: Workload | None) -> Sequence[Action] | None:
    """Return the writes for MultiKueue; None if those of a queue of this cluster are due."""
    if base is None:
        return () if queue.prebuilt else None
    if not base.metadata.job_uid:
        return (AdoptWorkload(ref=base.metadata, job=view.ref),)
    if queue.elsewhere:
        return (ClearWorkload(workload=base),) if base.preempted else ()
    return None


def workload_of(view: JobView, queue: Queue, pod: Launcher | Worker) -> Workload | None:
    """Return the Workload that asks for a pod's quota; None if there is none."""
    base = queue.base(view.name)
    if base is None:
        return None
    is_extra = isinstance(pod, Worker) and pod.index >= base.workers
    return queue.workloads.get(pod.ref.name) if is_extra else base


def set_of(pod: Launcher | Worker) -> str:
    """Return the set of pods to which a pod belongs in its Workload."""
    return demand.WORKERS if isinstance(pod, Worker) else demand.LAUNCHER


def waiting(view: JobView, queue: Queue) -> Workload | None:
    """Return the next Workload of the job that waits in a queue or for a check, or None."""
    base = queue.base(view.name)
    if base is None or base.waits or base.checked:
        return base
    asked = (workload_of(view, queue, worker) for worker in view.workers)
    return next((found for found in asked if found and (found.waits or found.checked)), None)


def quota(view: JobView, queue: Queue, pod: Launcher | Worker) -> str:
    """Return the word for a pod's quota; "" if none is asked for.

    The words are: least, extra, wanted back, or none if the pod runs without quota.
    """
    found = workload_of(view, queue, pod)
    if found is None:
        return ""
    if is_outside(view, queue, pod):
        return "none"
    if found.preempted and not pod.facts.held_back:
        return "wanted back"
    return "least" if found is queue.base(view.name) else "extra"


def is_taken_back(view: JobView, queue: Queue, worker: Worker) -> bool:
    """Tell whether Kueue wants back the quota with which an extra runs."""
    found = workload_of(view, queue, worker)
    return (
        found is not None
        and found.preempted
        and found is not queue.base(view.name)
        and not worker.facts.held_back
    )


def is_outside(view: JobView, queue: Queue, pod: Launcher | Worker) -> bool:
    """Tell whether a pod should wait for quota, and does not."""
    found = workload_of(view, queue, pod)
    is_asked = found is not None and not found.reserved and bool(found.said)
    return is_asked and not (pod.facts.gates or pod.facts.deleting)


def is_extra(view: JobView, base: Workload, worker: Worker) -> bool:
    """Tell whether a worker asks for its own quota."""
    return base.workers <= worker.index < view.replicas


def asked(view: JobView) -> int:
    """Return how many workers a base asks for: the least size, or all if none can leave."""
    if not view.elastic:
        return view.replicas
    least = view.facts.startup_workers
    return (
        view.replicas
        if least is None
        else min(view.replicas, max(least, view.facts.min_np_workers))
    )


def _at_the_gate(view: JobView, queue: Queue, *, now: float) -> Iterator[Hold | Place]:
    """Yield a Hold for each pod that waits for quota, and a Place for each that has it."""
    base = queue.base(view.name)
    is_granted = base is not None and base.granted and base.metadata.job_uid != ""
    domains = assigned(view, queue, now=now)
    for pod in view.pods:
        if not pod.facts.held_back:
            continue
        found = workload_of(view, queue, pod)
        if base is None or found is None or not (is_granted and found.granted):
            said = _said(found, now=now) if found else ""
            yield Hold(
                by=AUTHOR,
                pod=pod.ref.name,
                why=f"it waits in queue {found.queue if found else queue.name}{said}",
            )
        elif set_of(pod) in found.topology and pod.ref.name not in domains:
            why = f"it waits for a node that queue {found.queue} assigns"
            yield Hold(by=AUTHOR, pod=pod.ref.name, why=why)
        else:
            flavors = found.flavors.get(set_of(pod), ())
            yield Place(
                by=AUTHOR,
                pod=pod.ref.name,
                adds=flavors,
                words=f"queue {base.queue} has admitted them",
            )


def _said(found: Workload, *, now: float) -> str:
    """Return what Kueue says of a Workload that waits, as the end of a sentence."""
    if found.is_unanswered(now=now):
        return f"; {UNANSWERED}"
    return f": {found.line}" if found.said else ""


def assigned(view: JobView, queue: Queue, *, now: float) -> dict[str, Domain]:
    """Return the domain for each pod at a gate to which Kueue assigns one, by the pod's name."""
    if not any(found.topology for found in queue.workloads.values()):
        return {}  # most queues
    sets: dict[tuple[str, str], list[Launcher | Worker]] = {}
    for pod in view.pods:
        found = workload_of(view, queue, pod)
        if found and set_of(pod) in found.topology:
            sets.setdefault((found.metadata.name, set_of(pod)), []).append(pod)
    result: dict[str, Domain] = {}
    for (name, pod_set), pods in sets.items():
        if any(pod.facts.held_back for pod in pods):
            result |= _assigned(queue.workloads[name], pod_set, pods, now=now)
    return result


def _assigned(
    found: Workload, pod_set: str, pods: Sequence[Launcher | Worker], *, now: float
) -> dict[str, Domain]:
    """Return the domain for each pod at a gate, of the pods of one set."""
    domains = topology.domains(found.topology[pod_set])
    gated = [pod for pod in pods if pod.facts.held_back]
    started = [pod for pod in pods if not (pod.facts.held_back or _has_ended(pod))]
    marks = {pod.ref.name: pod.facts.marks.get(topology.DOMAIN, "") for pod in started}
    # Kueue assigns another node once all pods of the set have left this one.
    left = {marks[pod.ref.name] for pod in started if pod.facts.going(now=now)}
    closed = {
        one.mark
        for one in domains
        if one.node and (one.node in found.unhealthy or one.mark in left)
    }
    ranks = {pod.ref.name: _rank(found, pod) for pod in gated}
    return topology.places(domains, ranks, taken=marks.values(), closed=closed)


def _has_ended(pod: Launcher | Worker) -> bool:
    return isinstance(pod, Worker) and pod.terminated


def _rank(found: Workload, pod: Launcher | Worker) -> int:
    """Return the place of a pod in its set; a worker that is alone in its set is an extra."""
    if isinstance(pod, Launcher) or found.metadata.name == pod.ref.name:
        return 0
    return pod.index


def _wanted_back(view: JobView, queue: Queue, *, now: float) -> Iterator[Wish]:
    """Yield wishes for pods whose quota is wanted back, or was never asked for."""
    base = queue.base(view.name)
    why = _outgrown(view, queue)
    if base and base.preempted:
        why = f"Kueue ({base.line})"
    if why:
        yield Suspend(by=AUTHOR, why=why, queued=True)
    for pod in view.pods:
        is_taken = isinstance(pod, Worker) and is_taken_back(view, queue, pod)
        if is_taken:
            yield _end(pod.ref.name)
        elif queue.name and not pod.facts.node and is_outside(view, queue, pod):
            yield from _missed(pod, now=now)
    for name, hidden in view.hidden.items():
        found = queue.workloads.get(name)
        if found and found.preempted and found is not base and not hidden.idle:
            yield _end(name)


def _missed(pod: Launcher | Worker, *, now: float) -> Iterator[Wish]:
    """Yield the wish that a pod is made again, and waits for quota; no node has taken the pod."""
    after = honest(pod.facts.created_at, now=now) + MISSED_AFTER
    if isinstance(pod, Launcher):
        why = "was created without a gate for its queue while the webhook was down"
        yield Relaunch(by=AUTHOR, why=why, after=after)
    elif pod.unscheduled:
        yield Leave(
            by=AUTHOR,
            pod=pod.name,
            kind=LeaveKind.REPLACE,
            why="to wait for quota",
            cause=AUTHOR,
            after=after,
        )


def _end(pod: str) -> Leave:
    """Return the wish that a worker gives its quota back."""
    return Leave(by=AUTHOR, pod=pod, kind=LeaveKind.END, why=WANTED_BACK, cause=AUTHOR)


def _outgrown(view: JobView, queue: Queue) -> str:
    """Return why the quota of a job that has not started is given back; "" if it is enough.

    The job asks again. Otherwise two jobs whose -np was raised may each keep their quota, and wait
    for ever for that of the other.
    """
    base, launcher = queue.base(view.name), view.launcher
    needed = min(view.replicas, max(view.facts.np_workers, view.facts.min_np_workers))
    starts = launcher is None or launcher.phase in NOT_STARTED
    if base is None or queue.prebuilt or not (base.granted and starts and base.workers < needed):
        return ""
    return f"Kueue (quota for {base.workers} workers, and it starts with {needed})"


def _finished(view: JobView, queue: Queue) -> Iterator[FinishWorkload]:
    """Yield the Workloads whose pods have ended."""
    used = {
        found.metadata.name
        for pod in demand.ending(view)
        if (found := workload_of(view, queue, pod))
    }
    for found in queue.workloads.values():
        if not found.finished and found.metadata.name not in used:
            yield FinishWorkload(workload=found)


def _started(view: JobView, base: Workload) -> Iterator[MarkReady]:
    least = min(base.workers, view.replicas)
    runs = (
        view.driver_running
        and sum(worker.ready for worker in view.workers if worker.index < least) >= least
    )
    if base.granted and not base.ready and runs:
        yield MarkReady(workload=base)


def _owned(view: JobView, queue: Queue, base: Workload) -> Iterator[AdoptWorkload]:
    """Yield the adoption of each Workload that does not have all its pods as owners yet.

    The quota of a deleted job stays until its pods are gone.
    """
    for found in queue.workloads.values():
        like = demand.firsts(view) if found is base else (view.worker(found.metadata.name),)
        pods = tuple(pod.ref for pod in like if pod)
        if any(pod.uid not in found.pods for pod in pods):
            yield AdoptWorkload(ref=found.metadata, job=view.ref, pods=pods)


def _extras(view: JobView, queue: Queue, base: Workload) -> Iterator[Action]:
    """Yield the writes for workers beyond the base, lowest index first."""
    for worker in view.workers:
        if not is_extra(view, base, worker) or worker.facts.deleting:
            continue
        found = queue.workloads.get(worker.name)
        if found is None and base.granted:
            below = worker.index - base.workers + 1
            pods = (PodSet(name=demand.WORKERS, count=1, like=worker.ref),)
            yield CreateWorkload(
                name=worker.ref.name, queue=base.queue, priority=base.priority - below, pods=pods
            )
        elif found and found.granted and not found.ready and worker.ready:
            yield MarkReady(workload=found)


def _given_back(view: JobView, queue: Queue, base: Workload) -> Iterator[Action]:
    """Yield the writes that give quota back.

    They are for extras whose worker has gone or waits, and for a base of which nothing runs.
    """
    # The base of an elastic job is suspended instead.
    if base.preempted and not view.facts.acts_elastic and demand.nothing_runs(view):
        yield ClearWorkload(workload=base)
    for name, found in queue.workloads.items():
        if found is base or _may_be_used(view, base, name):
            continue
        if not base.reserved:
            yield DeleteWorkload(ref=found.metadata)
        elif _is_unneeded(view, base, name):
            if _is_gone(view, base, name):
                yield DeleteWorkload(ref=found.metadata)
        elif found.preempted:
            yield ClearWorkload(workload=found)


def _is_covered(view: JobView, base: Workload, name: str) -> bool:
    """Tell whether the base asks for this worker, too; the base may wait."""
    index = names.worker_index(name, job=view.name)
    return index is not None and index < base.workers


def _may_be_used(view: JobView, base: Workload, name: str) -> bool:
    """Tell whether a pod may run on the quota of this extra."""
    if name in view.unseen and view.may_run_unseen:
        return True
    pod = None if _is_covered(view, base, name) else view.worker(name)
    return pod is not None and not (pod.facts.held_back or pod.terminated)


def _is_unneeded(view: JobView, base: Workload, name: str) -> bool:
    """Tell whether the job does not ask for this extra any more."""
    index = names.worker_index(name, job=view.name)
    if index is None or index >= view.replicas:
        return True
    return _is_covered(view, base, name)


def _is_gone(view: JobView, base: Workload, name: str) -> bool:
    """Tell whether no pod has the extra.

    A worker that has ended holds nothing, although a finalizer may keep its pod.
    """
    if _is_covered(view, base, name):
        return True
    pod = view.worker(name)
    return pod is None or pod.terminated


def _is_stale(view: JobView, queue: Queue, base: Workload) -> bool:
    """Tell whether a base without quota asks for another queue or size than the job does now.

    While something runs, the base may have been granted already, unseen. A new size can wait then,
    because extras ask for themselves.
    """
    if base.reserved:
        return False
    if base.queue != queue.name:
        return True
    if not base.waits or queue.prebuilt or base.workers == asked(view):
        return False
    return demand.nothing_runs(view)

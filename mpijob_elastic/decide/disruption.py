"""Disruption: workers whose node or pod is about to go leave in time, and come back elsewhere.

Such a worker leaves the list, drains and is deleted; the operator recreates it, and the scheduler puts it elsewhere.
Never so many at once that fewer than the job's least stay, by our own doing: training that falls below horovodrun's
--min-np by a graceful removal may never go on (horovod#3494), so the others wait for replacements, and where none come
the node's end decides. Nor does the last worker leave that knows the training's state before a newcomer can have it.

A pod that comes back to such a node again and again (it may tolerate everything) is moved a few times, then stays.
"""

import math
from collections.abc import Iterable

from mpijob_elastic.decide import workloads
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.retries import MOVED
from mpijob_elastic.decide.state import JobState, WorkerState, honest
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, Worker

# A launcher cannot be moved; what its owner can do.
KEEP_LAUNCHER = (
    "training stops with it and resumes from the last checkpoint in the next launcher. To keep the next launcher "
    "running, give the job's launcher template a nodeSelector or affinity for nodes that stay, such as on-demand nodes"
)
# Seconds after which a Ready worker has surely been published and taken into the ring, with the state of the others.
SEASONED = 30.0


def going(view: JobView) -> frozenset[str]:
    """Return the pods of wanted workers that are to be elsewhere, whether they may leave yet or not."""
    threatened = [worker for worker in view.workers if worker.facts.disruption and _is_threatened(view, worker)]
    return frozenset(worker.ref.name for worker in threatened if not _gave_up(view, worker))


def leaving(view: JobView, all_going: frozenset[str], *, now: float) -> frozenset[str]:
    """Return the going pods that should not be published now; `now` inf: at the end of all waits."""
    if not all_going:
        return all_going
    trains = (worker for worker in view.workers if worker.ready and not worker.facts.node_gone_at)
    published = [worker for worker in trains if worker.ref.name in view.host_of]
    hosts = [worker for worker in published if worker.index < view.replicas]
    if view.queue and view.queue.workloads:
        hosts = [worker for worker in hosts if not workloads.is_taken_back(view, worker)]
    steady = [worker for worker in hosts if worker.ref.name not in all_going]
    gone = [worker.ref.name for worker in hosts if worker.ref.name in all_going]
    kept = max(0, least(view) - len(steady))
    if not any(_seasoned_at(worker, now=now) <= now for worker in steady):
        kept = max(kept, 1)
    return all_going.difference(gone[:kept])  # the lowest stay, as in a scale-in


def wake_at(state: JobState) -> float | None:
    """Return when a newcomer that a worker's leaving waits for is seasoned."""
    if not any(worker.going and worker.published for worker in state.workers):
        return None
    times = (_seasoned_at(worker.pod, now=state.now) for worker in state.workers if worker.published)
    return min((at for at in times if state.now < at < math.inf), default=None)


def cause(pod: Worker | Launcher) -> str:
    """Return in words what is about to happen to the pod."""
    return f"{pod.facts.disruption} on node {pod.facts.node}" if pod.facts.node else pod.facts.disruption


def each(workers: Iterable[WorkerState]) -> str:
    """Return every worker with its cause."""
    return ", ".join(f"{worker.name} ({cause(worker.pod)})" for worker in workers)


def notes(state: JobState) -> Iterable[Note]:
    """Yield what the job waits for, or cannot be helped."""
    view = state.view
    held = [worker for worker in state.workers if worker.going and worker.published]
    if held and not leaving(view, frozenset(worker.name for worker in held), now=math.inf):
        message = f"{each(held)} kept until a replacement trains: the job needs at least {least(view)} workers"
        yield warning("DisruptionHeld", message)
    threatened = [
        worker for worker in state.workers if worker.pod.facts.disruption and _is_threatened(view, worker.pod)
    ]
    stuck = [worker for worker in threatened if _gave_up(view, worker.pod)]
    if stuck:
        message = f"{each(stuck)} kept: recreated {len(MOVED.delays)} times, and always on a node that is going away"
        yield warning("DisruptionRepeated", message)
    launcher = view.launcher
    if launcher and launcher.facts.disruption and view.elastic and not launcher.facts.deleting:
        message = f"{launcher.ref.name} ({cause(launcher)}) cannot be moved: {KEEP_LAUNCHER}"
        yield warning("LauncherDisrupted", message)


def least(view: JobView) -> int:
    """Return below how many workers the job is not brought."""
    return max(view.policy.min_replicas or 1, view.facts.min_np_workers)


def _is_threatened(view: JobView, worker: Worker) -> bool:
    is_wanted = worker.index < view.replicas
    if view.queue and view.queue.workloads:
        is_wanted = is_wanted and not workloads.is_taken_back(view, worker)
    is_there = not (worker.facts.deleting or worker.terminated or worker.facts.node_gone_at)  # else it is lost already
    return view.elastic and is_wanted and is_there


def _gave_up(view: JobView, worker: Worker) -> bool:
    last = view.memory.moved.get(worker.ref.name)
    return last is not None and last.uid != worker.ref.uid and last.count >= len(MOVED.delays)


def _seasoned_at(worker: Worker, *, now: float) -> float:
    return math.inf if worker.facts.ready_at is None else honest(worker.facts.ready_at, now=now) + SEASONED

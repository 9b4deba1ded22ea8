"""Workers whose node or pod is about to go: they leave in time, and come back elsewhere.

Such a worker leaves the list, drains and is deleted; the operator creates it anew, and the scheduler puts it elsewhere.
Never so many at once that fewer than the job's least stay, by our own doing: training that falls below horovodrun's
--min-np by a graceful removal may never go on (horovod#3494), so the others wait for replacements, and where none come
the node's end decides. Nor does the last one leave that knows the training's state before a newcomer can have it.

A pod that comes back to such a node again and again (it may tolerate everything) is moved a few times, then stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from mpijob_elastic.decide import clock, retries
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView, Launcher, Worker
from mpijob_elastic.model.memory import Tries

# Seconds after a worker's first, second, third arrival at such a node before it is moved; then it stays there.
BACKOFFS = (0.0, 30.0, 120.0)
# A launcher cannot be moved; what its owner can do.
KEEP_LAUNCHER = (
    "training ends with it, and goes on from its last checkpoint in the next one: give the job's launcher template a "
    "nodeSelector or affinity for nodes that stay (on-demand), which the next one follows"
)
# Seconds after which a Ready worker has surely been published and taken into the ring, with the state of the others.
SEASONED = 30.0


def going(view: JobView) -> frozenset[str]:
    """Pods of wanted workers that are to be elsewhere, whether they may leave yet or not."""
    return frozenset(worker.name for worker in view.workers if _goes(view, worker))


def departing(view: JobView, *, now: float = math.inf) -> frozenset[str]:
    """Those of them that should not be hosts now; at the end of all waits where no time is given."""
    all_going = going(view)
    if not all_going:
        return all_going
    hosts = [
        worker for worker in view.workers if worker.ready and view.is_published(worker) and _is_wanted(view, worker)
    ]
    steady = [worker for worker in hosts if worker.name not in all_going]
    leaving = [worker.name for worker in hosts if worker.name in all_going]
    kept = max(0, fewest(view) - len(steady))
    if not any(_seasoned_at(worker, now=now) <= now for worker in steady):
        kept = max(kept, 1)
    return all_going.difference(leaving[:kept])  # the lowest stay, as in a scale-in


def fewest(view: JobView) -> int:
    """Workers below which the job is not brought."""
    return max(view.policy.min_replicas or 1, view.min_np_workers)


def wake_at(view: JobView, *, now: float) -> float | None:
    """When a newcomer that somebody's leaving waits for is one no more."""
    if not going(view) & view.host_of.keys():
        return None
    times = (_seasoned_at(worker, now=now) for worker in view.workers if view.is_published(worker))
    return min((at for at in times if now < at < math.inf), default=None)


def may_move(view: JobView, worker: Worker) -> bool:
    """Whether this worker is out of the list because it is to be elsewhere, and may be deleted for that."""
    wanted = _goes(view, worker) and view.policy.replace_failed_workers is not False
    return wanted and not view.is_published(worker)


def tries(view: JobView, published: Collection[str], *, now: float) -> Mapping[str, Tries]:
    """The count of moves by pod name, each incarnation counted once; `published`: pods that are in the list then."""
    moving = {worker.ref.uid for worker in view.workers if worker.name not in published and _goes(view, worker)}
    return retries.counted(view.memory.moved, view.workers, troubled=moving, now=now)


def due_at(view: JobView, worker: Worker, *, now: float) -> float | None:
    """When the worker may be deleted, as far as this module knows; None while its move is not written down yet."""
    counted = retries.of_this_pod(view.memory.moved, worker)
    if counted is None:
        return None
    return clock.honest(counted.at, now=now) + BACKOFFS[min(counted.count, len(BACKOFFS)) - 1]


def cause(pod: Worker | Launcher) -> str:
    """What is about to happen to it, in words."""
    return f"{pod.disruption} on node {pod.node}" if pod.node else pod.disruption


def each(workers: Iterable[Worker]) -> str:
    """Every worker with its cause."""
    return ", ".join(f"{worker.name} ({cause(worker)})" for worker in workers)


def notes(view: JobView) -> Iterable[Note]:
    """What the job waits for, or cannot be helped."""
    held = [worker for worker in view.workers if _goes(view, worker) and view.is_published(worker)]
    if held and not departing(view) & view.host_of.keys():
        least = fewest(view)
        yield _warn("DisruptionHeld", f"{each(held)}; kept until a replacement trains, for {least} must stay")
    stuck = [worker for worker in view.workers if _is_threatened(view, worker) and _gave_up(view, worker)]
    if stuck:
        message = f"{each(stuck)}; came back to such a node {len(BACKOFFS)} times, and stays until that goes"
        yield _warn("DisruptionRepeated", message)
    launcher = view.launcher
    if launcher and launcher.disruption and view.elastic and not launcher.deleting:
        message = f"{launcher.ref.name} ({cause(launcher)}); a launcher cannot be moved: {KEEP_LAUNCHER}"
        yield _warn("LauncherDisrupted", message)


def _is_wanted(view: JobView, worker: Worker) -> bool:
    return worker.index < view.replicas


def _is_threatened(view: JobView, worker: Worker) -> bool:
    if not worker.disruption:
        return False
    return view.elastic and not worker.deleting and not worker.terminated and _is_wanted(view, worker)


def _gave_up(view: JobView, worker: Worker) -> bool:
    last = view.memory.moved.get(worker.name)
    return last is not None and last.uid != worker.ref.uid and last.count >= len(BACKOFFS)


def _goes(view: JobView, worker: Worker) -> bool:
    return _is_threatened(view, worker) and not _gave_up(view, worker)


def _seasoned_at(worker: Worker, *, now: float) -> float:
    return math.inf if worker.ready_at is None else clock.honest(worker.ready_at, now=now) + SEASONED


def _warn(reason: str, message: str) -> Note:
    return Note(reason=reason, message=" ".join(message.split()), warning=True)

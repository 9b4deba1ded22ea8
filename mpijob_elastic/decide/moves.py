"""Moves: workers that are to train elsewhere soon leave in time, and never too many at once.

Such a worker leaves the list, drains and is deleted; the operator recreates it, and the scheduler
puts it elsewhere. Our moves never leave fewer workers than the job's least: training that falls
below horovodrun's --min-np by a graceful removal may never go on (horovod#3494). So the other
workers wait for replacements, and if no replacement comes, the end of the node decides. The last
worker that knows the training's state does not leave before a newcomer can have that state.
elastic.sh has the state saved, so there only workers whose node does not go at a set time wait.

A pod that comes back to such a node again and again (it may tolerate everything) is moved a few
times, then stays.
"""

import math
from collections.abc import Collection, Iterable, Iterator

from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.state import MOVED, JobState, WorkerState, honest, is_there
from mpijob_elastic.decide.wishes import LeaveKind, Wishes
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Worker

# Seconds after which a Ready worker has surely been published and taken into the ring, and has the
# training's state.
SEASONED = 30.0


def going(view: JobView, wishes: Wishes) -> frozenset[str]:
    """Return the pods of wanted workers that are to train elsewhere.

    They may have to wait before they leave (see `leaving`).
    """
    if not view.elastic:
        return frozenset()
    moved = (leave.pod for leave in wishes.leaves.values() if leave.kind is LeaveKind.MOVE)
    pods = [pod for pod in map(view.worker, moved) if pod and may_move(view, pod)]
    return frozenset(pod.name for pod in pods)


def leaving(
    view: JobView, wishes: Wishes, all_going: Collection[str], *, now: float
) -> frozenset[str]:
    """Return the going pods that should not be published now.

    With `now` infinite: the pods that leave once all waits for seasoned workers are over.
    """
    if not all_going:
        return frozenset()
    hosts = [worker for worker in _wanted(view, wishes) if worker.name in view.host_of]
    steady = [worker for worker in hosts if worker.name not in all_going]
    kept = max(0, least(view) - len(steady))
    gone = [worker for worker in hosts if worker.name in all_going]
    if not view.driver.keeps_ranks:
        # Ranks that are told in time save their state, however few workers stay. So only workers
        # whose node can wait do so.
        patient = [worker.name for worker in gone if worker.facts.can_wait]
        return frozenset(all_going).difference(patient[:kept])
    if not any(_seasoned_at(worker, now=now) <= now for worker in steady):
        kept = max(kept, 1)
    held = [worker.name for worker in gone[:kept]]  # the lowest stay, as in a scale-in
    return frozenset(all_going).difference(held)


def _wanted(view: JobView, wishes: Wishes) -> Iterator[Worker]:
    """Yield the Ready workers that the size asks for, and whose quota nobody waits for."""
    ends = {leave.pod for leave in wishes.leaves.values() if leave.kind is LeaveKind.END}
    for worker in view.workers:
        if worker.index not in view.wanted or worker.name in ends:
            continue
        if worker.ready and not worker.facts.node_gone_at:
            yield worker


def wake_at(state: JobState) -> float | None:
    """Return the time at which the newcomer is seasoned for which a going worker waits, or None."""
    if not state.wishes.leaves or not state.view.driver.keeps_ranks:
        return None
    hosts = [worker for worker in state.workers if worker.published]
    if not any(worker.going for worker in hosts):
        return None
    times = (_seasoned_at(worker.pod, now=state.now) for worker in hosts)
    return min((at for at in times if state.now < at < math.inf), default=None)


def cause(worker: WorkerState) -> str:
    """Return the reason why a worker is to train elsewhere, in words."""
    node = worker.pod.facts.node
    if node:
        return f"{worker.cause} on node {node}"
    return worker.cause


def each(workers: Iterable[WorkerState]) -> str:
    """Return the names of workers, each with its cause."""
    return listed(f"{worker.name} ({cause(worker)})" for worker in workers)


def notes(state: JobState) -> Iterable[Note]:
    """Yield notices on the workers that stay although they are to train elsewhere."""
    held = _held(state)
    if held:
        message = (
            f"{each(held)} kept until a replacement trains: the job needs at least "
            f"{least(state.view)} workers"
        )
        yield warning("DisruptionHeld", message)
    stuck = _stuck(state)
    if stuck:
        message = (
            f"{each(stuck)} kept: recreated {len(MOVED.delays)} times, and always on a node that "
            "is going away or has a faulty device"
        )
        yield warning("DisruptionRepeated", message)


def _held(state: JobState) -> list[WorkerState]:
    """Return the listed workers that only a replacement lets go."""
    held = [worker for worker in state.workers if worker.going and worker.published]
    going = [worker.name for worker in held]
    if leaving(state.view, state.wishes, going, now=math.inf):
        return []
    return held


def _stuck(state: JobState) -> list[WorkerState]:
    """Return the workers that have been moved in vain too often."""
    view = state.view
    if not view.elastic:
        return []
    threatened = [worker for worker in state.workers if worker.wanted and worker.cause]
    there = [worker for worker in threatened if _helps(view, worker.pod)]
    return [worker for worker in there if _gave_up(view, worker.pod)]


def least(view: JobView) -> int:
    """Return the least number of workers to which moves may bring the job."""
    return max(view.policy.min_replicas or 1, view.facts.min_np_workers)


def may_move(view: JobView, worker: Worker) -> bool:
    """Tell whether a worker may be moved: that helps, and was not in vain too often."""
    return _helps(view, worker) and not _gave_up(view, worker)


def _helps(view: JobView, worker: Worker) -> bool:
    """Tell whether a move helps: the worker is wanted, and is not lost already."""
    return worker.index in view.wanted and is_there(worker)


def _gave_up(view: JobView, worker: Worker) -> bool:
    last = view.memory.moved.get(worker.name)
    if last is None or last.uid == worker.ref.uid:
        return False
    return last.count >= len(MOVED.delays)


def _seasoned_at(worker: Worker, *, now: float) -> float:
    if worker.facts.ready_at is None:
        return math.inf
    return honest(worker.facts.ready_at, now=now) + SEASONED

"""The size of a job with a scale-timeout, or that fills: its memory, and when it is set.

Scale timeout: a size that cannot be reached is set back to the last size that worked. Only a
scale-out is taken back, and only while the job trains: the size with which the job starts is what
its author asked for. A worker counts as soon as it is Ready, whether it is published already or
not, and workers that became Ready stay.

Fill: a job takes idle nodes by itself, and gives back what others need or what it cannot get. In a
queue of Kueue the job asks for its largest size at once, because Kueue grants and takes back worker
by worker. Otherwise the job grows by one worker, or to the next size that it may have, while
neither its own workers nor other jobs wait: each step costs training a reset or a start, so there
is a pause after it (change_pause). The job gives back as many workers as other jobs wait
for, in one step, and workers that no node takes, down to a size that it may have. A pod that still
waits after some minutes was not helped by that. All such pods count again for as long each hour, at
the same time, however many they are. After a loss the job does not grow beyond its size before for
a while (see `losses`), and for some hours not beyond a size at which another worker did not pay
(see `worth`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from msgspec.structs import replace

from mpijob_elastic.capabilities.autoscaling import autoscaler, change_pause, losses, worth
from mpijob_elastic.capabilities.autoscaling.autoscaler import Autoscaler
from mpijob_elastic.capabilities.autoscaling.facts import scaling
from mpijob_elastic.capabilities.autoscaling.growth import Growth, encoded, remembered
from mpijob_elastic.capabilities.autoscaling.worth import most
from mpijob_elastic.decide.actions import Note, Operations, SetSize, normal, put, test, warning
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model import phrases
from mpijob_elastic.model.phrases import listed

# Seconds that a pod of another job waits before workers are given back for it: a scheduler may need
# a moment.
PATIENCE = 20.0
# Seconds for which a pod of another job counts, and from one round to the next. In each round all
# pods that still wait count again for that long, because a pod that no node can take waits for
# ever. The rounds follow the pod that waits longest, so the rounds of many pods do not add up.
HELPS_WITHIN, ROUND = 600.0, 3600.0
# Seconds that a worker of the job itself waits for a node before it is given back.
UNSCHEDULED_FOR = 120.0
# Seconds between two looks: nothing else tells a job that the pods of another job wait.
EVERY = 15.0


@dataclass(frozen=True, kw_only=True)
class _Resize(SetSize):
    resource: Resource = MPI_JOBS

    def change(self) -> Operations:
        path = "/spec/mpiReplicaSpecs/Worker/replicas"
        return (test("/metadata/uid", self.ref.uid), test(path, self.before), put(path, self.after))


class RollBack(_Resize):
    """Set the size of the job back, from `before` to `after`.

    Besides Fill, this is the only write of this room to the spec of a job.
    """


class Fill(_Resize):
    """Set the size of a job that fills idle nodes, within its bounds."""


def entry(state: JobState, published: Collection[str]) -> bytes:
    """Return the entry of the memory once these pods are published."""
    view, old, now = state.view, state.view.memory, state.now
    asked = 0 if state.stopped else view.replicas  # time in suspension does not count
    before = remembered(view) or Growth(
        worked=old.scale.after if old.scale else 0, asked=asked, at=now
    )
    wanted = view.wanted_names
    whole = bool(wanted) and set(wanted) <= set(published)
    worked = view.replicas if whole else min(before.worked, view.replicas)
    believed = before.asked == asked and before.at == honest(before.at, now=now)
    at = before.at if believed else now
    return encoded(replace(worth.followed(state, before, asked), worked=worked, asked=asked, at=at))


def resize(
    state: JobState, known: Sequence[Autoscaler], others_wait: Sequence[float] | None
) -> Step[SetSize]:
    """Return the change of size that is due, or None; and when to look again.

    others_wait: None where nobody looks.
    """
    view, size, asked = state.view, remembered(state.view), scaling(state.view.facts)
    if size is None or size.asked != view.replicas or not (view.elastic and view.driver_running):
        return NO_STEP
    if asked.fill:
        if others_wait is None or autoscaler.rivals(known):
            return NO_STEP
        return _fill(state, size, others_wait)
    if asked.scale_timeout is None:
        return NO_STEP
    return _roll_back(state, size, asked.scale_timeout)


def _roll_back(state: JobState, size: Growth, timeout: float) -> Step[RollBack]:
    view, now = state.view, state.now
    # If some workers are parked, a smaller size would remove others than the last.
    if view.skips or not 0 < size.worked < view.replicas:
        return NO_STEP
    missing = [
        pod for pod in view.wanted_names if pod not in state.by_name or not state.by_name[pod].ready
    ]
    # The operator knows only a size, not which workers are meant: all workers below it must be
    # Ready.
    unbroken = view.wanted_names.index(missing[0]) if missing else view.replicas
    reachable = view.facts.size_down(max(size.worked, view.policy.min_replicas or 1, unbroken))
    if not missing or reachable >= view.replicas or size.at != honest(size.at, now=now):
        return NO_STEP
    if now < size.at + timeout:
        return Step(again_at=size.at + timeout)
    limit = phrases.duration(timeout)
    message = (
        f"{listed(missing)} not Ready {limit} after the scale-out to "
        f"{view.replicas} workers ({_why(state, missing[0])}); Worker.replicas "
        f"returns to {reachable}, the last size that worked"
    )
    note = warning("ScaleTimeout", message)
    return Step(RollBack(ref=view.ref, before=view.replicas, after=reachable, note=note))


def _why(state: JobState, pod: str) -> str:
    worker = state.view.worker(pod)
    if worker is None:
        return f"{pod} was not created; see the operator's Events"
    if held := state.wishes.held.get(pod):
        return held
    return worker.facts.obstacle or worker.facts.last_state or f"see `kubectl describe pod {pod}`"


def _fill(state: JobState, size: Growth, others_wait: Sequence[float]) -> Step[Fill]:
    view, now, in_queue = state.view, state.now, state.wishes.is_rationed
    if in_queue is None or view.policy.min_replicas is None:
        return NO_STEP
    changes = (
        honest(at, now=now) for at in (size.at, view.memory.added_at, view.memory.removed_at)
    )
    due_at = 0.0 if in_queue else max(changes) + change_pause.pause(view)
    if now < due_at:
        return Step(again_at=due_at)
    if in_queue:
        after, why = most(view), "Kueue decides how many run"
    else:
        after, why = _wanted(state, size, others_wait)
    wake_at = None if in_queue else now + EVERY
    if after > view.replicas and (pause := losses.pause(view, now=now)):
        after = max(view.replicas, min(after, pause.most))
    if after == view.replicas:
        return Step(again_at=wake_at)
    note = normal("SizeFilled", f"Worker.replicas {view.replicas} → {after}: {why}")
    fill = Fill(ref=view.ref, before=view.replicas, after=after, note=note)
    return Step(fill, wake_at)


def notes(state: JobState) -> Iterator[Note]:
    """Yield notices on why a job that fills takes no more idle nodes."""
    view = state.view
    if not (view.elastic and view.driver_running) or state.wishes.suspend:
        return
    pause = losses.pause(view, now=state.now)
    if pause and max(view.replicas, pause.most) < most(view):
        yield losses.note(view, pause)
    if size := remembered(view):
        yield from worth.notes(state, size)


def _wanted(state: JobState, size: Growth, others_wait: Sequence[float]) -> tuple[int, str]:
    """Return the size for now, and the reason."""
    view, least = state.view, state.view.policy.min_replicas or 1
    others_wait = helped(others_wait, now=state.now)
    if waiting := sum(at <= state.now - PATIENCE for at in others_wait):
        idle = _unscheduled(state, before=state.now)
        after, why = (
            view.replicas - idle - waiting,
            f"other jobs wait for nodes for {waiting} of their workers",
        )
    elif idle := _unscheduled(state, before=state.now - UNSCHEDULED_FOR):
        after, why = view.replicas - idle, f"no node takes the last {idle}"
    else:
        return _grown(state, size, is_free=not others_wait)
    return min(view.replicas, view.facts.size_down(max(least, after))), why


def _grown(state: JobState, size: Growth, *, is_free: bool) -> tuple[int, str]:
    """Return the size of a job whose workers have all found nodes; free: nobody else waits."""
    view = state.view
    found = worth.ceiling(view, size, now=state.now)
    is_ours = scaling(view.facts).sized_by_us
    if found and is_ours and found.size < view.replicas == found.tried:
        return found.size, worth.words(found, scaling(view.facts))
    highest = found.size if found else most(view)
    if not is_free or not _is_whole(state) or worth.is_awaited(view, size, now=state.now):
        highest = min(highest, view.replicas)
    grown = view.facts.size_at_least(view.replicas + 1)
    more = grown if grown and grown <= highest else view.facts.size_down(view.replicas)
    return min(more, most(view)), "none of its workers waits"


def helped(waits: Sequence[float], *, now: float) -> list[float]:
    """Return when the pods began to wait for nodes that giving workers back may help."""
    longest = max(0.0, now - min(waits, default=now))
    return [at for at in waits if now - at < HELPS_WITHIN or longest % ROUND < HELPS_WITHIN]


def _unscheduled(state: JobState, *, before: float) -> int:
    """Count the highest workers, created before that time, that have found no node."""

    def waits(pod: str) -> bool:
        found = state.view.worker(pod)
        return bool(
            found
            and found.unscheduled
            and not found.facts.gates
            and found.facts.created_at <= before
        )

    return len(list(takewhile(waits, reversed(state.view.wanted_names))))


def _is_whole(state: JobState) -> bool:
    published, view = set(state.view.published_pods), state.view
    ready = (
        pod in published and pod in state.by_name and state.by_name[pod].ready
        for pod in view.wanted_names
    )
    return all(ready) and not state.to_delete

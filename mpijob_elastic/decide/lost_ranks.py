"""Published workers whose rank is lost while their pod runs on: killed, out of memory, crashed.

Horovod blacklists the host and trains on without it. Nobody says so, but it can be seen: where ranks ran under this
host name, nothing but the main process does any more, look after look, while others train. Such a worker leaves the
list and comes back under a new host name (see naming), a few times, later and later; then it is given up for a while.

A worker in which no rank was ever seen may wait for the others' next commit, or for nothing at all (--max-np), or have
been lost before we looked. It gets one new name, after a long wait. Where fewer than half of the workers train, the
training may be ending or beginning, so more time must pass; but it may also be that Horovod lost several ranks at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mpijob_elastic.decide import clock, host_names, retries
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.model.memory import Tries

# For how many seconds a worker must be seen idle: longer than a crashed rank takes to be started again by its driver.
LOST_AFTER = 30.0
NEVER_TRAINED_AFTER = 600.0
# The same where fewer than half of the workers train: when training ends, ranks end one after the other.
FEW_TRAIN_AFTER = 120.0
# Seconds before the first, second, ... new host name is published; after so many the worker is given up.
BACKOFFS = (0.0, 30.0, 60.0, 120.0, 240.0)
# For how long (seconds) it is given up, unless another pod takes its place.
GIVEN_UP_FOR = 3600.0

# Seconds between two looks into one worker: while all is well, and while it is new or idle.
LOOK_SELDOM = 30.0
LOOK_SOON = 10.0
# For how long (seconds) a new host is looked at often, if nothing runs in it.
NEW_FOR = 120.0
# Workers that are due within so many seconds are looked at together, so that a large job is not woken for each; much
# less than the pause between two looks, or each answer would bring about the next question.
TOGETHER = 3.0


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Published workers to look into now by exec, and when to look at the job again for more of them."""

    workers: tuple[Worker, ...] = ()
    wake_at: float | None = None


def watch(view: JobView, *, now: float) -> Watch:
    """Whom to look at. This is no part of a plan: it goes on for as long as a job trains, and changes nothing."""
    watched = _watched(view)
    if not watched:
        return Watch()
    often = _suspicious(view, watched, now=now)
    due = {worker.name: _look_at(worker, often, now=now) for worker in watched}
    first = min(due.values())
    if first > now:
        return Watch(wake_at=first)
    chosen = tuple(worker for worker in watched if due[worker.name] <= now + TOGETHER)
    # Whoever is asked now answers in time or not; the others are due later.
    rest = [at for at in due.values() if at > now + TOGETHER]
    return Watch(workers=chosen, wake_at=min([now + LOOK_SOON, *rest]))


def lost(view: JobView, *, now: float) -> frozenset[str]:
    """Published pods that are to come back under a new host name."""
    return frozenset(worker.name for worker in _idle(view, now=now) if _losses(view, worker, now=now) < len(BACKOFFS))


def tries(view: JobView, removed: Collection[str], *, now: float) -> Mapping[str, Tries]:
    """How often the rank of each pod was lost, by its name, once `removed` are out of the list."""
    known = ((worker, _last(view, worker, now=now)) for worker in _renamed(view))
    counted = {worker.name: last for worker, last in known if last is not None}
    for worker in _idle(view, now=now):
        losses = _losses(view, worker, now=now)
        if worker.name in removed or losses == len(BACKOFFS):
            counted[worker.name] = Tries(count=losses + 1, at=now, uid=worker.ref.uid)
    return counted


def due_at(view: JobView, worker: Worker, *, now: float) -> float:
    """From when on the worker may be published again; 0 where nothing speaks against it."""
    last = _last(view, worker, now=now)
    return clock.honest(last.at, now=now) + BACKOFFS[min(last.count, len(BACKOFFS)) - 1] if last else 0.0


def given_up(view: JobView, *, now: float) -> tuple[Worker, ...]:
    """Workers that lost their rank too often."""
    return tuple(worker for worker in _renamed(view) if _losses(view, worker, now=now) > len(BACKOFFS))


def forgiven_at(view: JobView, *, now: float) -> Iterator[float]:
    """When those are tried again."""
    for worker in given_up(view, now=now):
        last = _last(view, worker, now=now)
        if last is not None:
            yield min(last.at, now) + GIVEN_UP_FOR


def _renamed(view: JobView) -> tuple[Worker, ...]:
    """Workers that something is remembered of: mostly none, so nobody else is looked at."""
    before = view.memory.renamed
    return tuple(worker for worker in view.workers if worker.name in before) if before else ()


def _last(view: JobView, worker: Worker, *, now: float) -> Tries | None:
    """The last loss of this very pod, unless that is forgiven."""
    last = retries.of_this_pod(view.memory.renamed, worker)
    if last is None:
        return None
    kept = GIVEN_UP_FOR if last.count > len(BACKOFFS) else retries.FORGIVEN_AFTER
    return last if now < last.at + kept else None


def _losses(view: JobView, worker: Worker, *, now: float) -> int:
    last = _last(view, worker, now=now)
    return last.count if last else 0


def _watched(view: JobView) -> tuple[Worker, ...]:
    anothers = view.foreign or view.handed_over
    if anothers or view.finished or view.deleting or not view.driver_running or not host_names.may_number(view):
        return ()
    if len(view.published_pods) < 2:
        return ()  # there is nobody to compare it with
    return tuple(worker for worker in view.workers if worker.ready and view.is_published(worker) and not worker.opaque)


def _idle(view: JobView, *, now: float) -> tuple[Worker, ...]:
    """Workers whose rank is lost, whether they are given up or not."""
    if all(worker.probe.idle_at is None for worker in view.workers):
        return ()
    watched = _watched(view)
    training = [worker for worker in watched if _trains(worker)]
    if _is_full(view, len(training)):
        return ()
    last = max((worker.probe.busy_at for worker in training), default=0.0)
    patience = FEW_TRAIN_AFTER if 2 * len(training) < len(watched) else LOST_AFTER
    return tuple(worker for worker in watched if _is_lost(view, worker, last, patience=patience, now=now))


def _trains(worker: Worker) -> bool:
    return worker.probe.busy_seen and worker.probe.idle_at is None


def _is_full(view: JobView, training: int) -> bool:
    """Whether horovodrun's own options let no more workers train."""
    return view.max_np_workers > 0 and training >= view.max_np_workers


def _is_lost(view: JobView, worker: Worker, others_busy_at: float, *, patience: float, now: float) -> bool:
    probe = worker.probe
    if probe.idle_at is None or probe.idle_since is None or probe.idle_at != clock.honest(probe.idle_at, now=now):
        return False
    if others_busy_at <= probe.idle_since or now - probe.idle_at > LOOK_SELDOM:
        return False  # it is not known that others went on without it, or not known how it is now
    patience = patience if probe.busy_seen else NEVER_TRAINED_AFTER
    return probe.idle_at - probe.idle_since >= patience and (probe.busy_seen or not _losses(view, worker, now=now))


def _suspicious(view: JobView, watched: tuple[Worker, ...], *, now: float) -> frozenset[str]:
    """Pods to be looked into often: new and idle ones, and one that trains, to know that training goes on."""
    is_new = now - max(view.memory.added_at, view.memory.removed_at) < NEW_FOR
    new = [one.name for one in watched if is_new and not one.probe.busy_seen]
    idle = [one for one in watched if one.probe.busy_seen and one.probe.idle_at is not None]
    doubtful = [one.name for one in idle if _losses(view, one, now=now) <= len(BACKOFFS)]
    witness = [one.name for one in watched if doubtful and _trains(one)][:1]
    return frozenset([*new, *doubtful, *witness])


def _look_at(worker: Worker, often: Collection[str], *, now: float) -> float:
    asked_at = worker.probe.asked_at
    if not 0.0 < asked_at <= now:
        return now
    return asked_at + (LOOK_SOON if worker.name in often else LOOK_SELDOM)

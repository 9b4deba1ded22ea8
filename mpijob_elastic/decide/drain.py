"""Workers that leave: which may be deleted now, which must be looked at first.

Safety rules 2 and 3. A worker is deletable when discover_hosts.sh no longer names it and nothing trains in it: it was
never named, no node had taken its pod or that has terminated, no driver can run, exec has shown nothing but its main
process since the launcher knows, or its drain-timeout has passed. A worker that the size asks for again is not looked
at here, so a scale-out cancels a drain by itself. So does a node that is to stay after all (see disruption).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic.decide import disruption, failed_workers, history, launcher_refresh
from mpijob_elastic.decide.actions import Note, Removal
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView, Probe, Worker
from mpijob_elastic.model.memory import Left

# How many seconds after the launcher was shown the list a worker must still be empty. Until then the driver may start
# a rank in it: it reads the list up to 1.7 s later (see pacing), and its exec takes a moment to show. Where a rank
# was seen to end, the driver has most likely read it.
QUIET_AFTER_BUSY = 2.0
QUIET_WITHOUT_BUSY = 5.0
# Seconds between two looks into one worker: often at first, when a rank usually ends, then seldom.
PROBE_SOON = 0.5
PROBE_LATER = 2.0
PROBE_SOON_FOR = 10.0


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """What to do about leaving workers now, highest index first, and when to look again."""

    removals: tuple[Removal, ...] = ()
    probes: tuple[Worker, ...] = ()
    wake_at: float | None = None


def removals(view: JobView, *, now: float) -> Leaving:
    """Everything that may be deleted or must be probed; the same answer is asked for again from live objects."""
    if view.finished:
        return _leftovers(view)
    if not view.elastic:
        return Leaving()
    found: list[Removal] = []
    probes: list[Worker] = []
    wakes: list[float] = []
    for worker in _candidates(view):
        outcome = _outcome(view, worker, now=now)
        if outcome:
            found.append(_removal(view, worker, outcome, now=now))
            continue
        probe_at = _probe_at(view, worker, now=now)
        if probe_at is not None and probe_at <= now:
            probes.append(worker)
        times = (probe_at, _deadline(view, worker, now=now), disruption.due_at(view, worker, now=now))
        wakes += [at for at in times if at is not None and at > now]
    return Leaving(removals=tuple(found), probes=tuple(probes), wake_at=min(wakes, default=None))


def _leftovers(view: JobView) -> Leaving:
    """[operator] a finished job's workers are deleted by the operator below `replicas` only; the rest would leak."""
    if view.clean_pod_policy not in ("Running", "All"):
        return Leaving()
    gone = [worker for worker in view.surplus if not worker.deleting]
    return Leaving(removals=tuple(_removal(view, worker, "finished", now=0.0) for worker in gone))


def _candidates(view: JobView) -> Iterable[Worker]:
    if launcher_refresh.may_delete(view):
        yield from (worker for worker in view.surplus if not worker.deleting)
        yield from (worker for worker in reversed(view.workers) if failed_workers.is_wanted(view, worker))
        yield from (worker for worker in reversed(view.workers) if disruption.may_move(view, worker))


def _outcome(view: JobView, worker: Worker, *, now: float) -> str:
    """Why the worker may be deleted now, as a word; "" where it may not."""
    if worker.terminated and worker.index < view.replicas:
        return _replaced(view, worker, now=now)
    if worker.name in view.published_pods or not _may_move(view, worker, now=now):
        return ""
    if worker.terminated or not view.driver_may_run:
        return "idle"
    return _after_training(view, worker, now=now)


def _may_move(view: JobView, worker: Worker, *, now: float) -> bool:
    """Of a worker that the size asks for, and that is wanted elsewhere; any other may."""
    due = disruption.due_at(view, worker, now=now)
    return worker.index >= view.replicas or (due is not None and now >= due)


def _after_training(view: JobView, worker: Worker, *, now: float) -> str:
    if not history.is_known(view.config):
        return ""  # whether it was published a moment ago is not known until the first write of ours
    if worker.unscheduled:
        return "unscheduled"  # should a node take it meanwhile, its new version refuses the deletion
    left = history.left(view, worker, now=now)
    if left is None:
        return "unused"
    began = drain_began(view, left, now=now)
    if began is None:
        return ""
    if is_drained(worker.probe, began):
        return "drained"
    return "timeout" if now >= began + view.policy.drain_timeout else ""


def drain_began(view: JobView, left: Left, *, now: float) -> float | None:
    """When the launcher could know that this worker leaves; None while it cannot, or while we do not know."""
    if not history.is_known(view.config):
        return None
    if view.driver_running and not view.published_pods:
        return None  # nobody was told to leave by a list that got lost
    return launcher_refresh.known_since(view, left, now=now)


def is_drained(probe: Probe, began: float) -> bool:
    """Whether exec has shown that nothing trains any more in a worker that the launcher knows to have left."""
    quiet = QUIET_AFTER_BUSY if probe.busy_seen else QUIET_WITHOUT_BUSY
    return probe.idle_at is not None and probe.idle_at >= began + quiet


def _replaced(view: JobView, worker: Worker, *, now: float) -> str:
    due = failed_workers.due_at(view, worker, now=now)
    # The last host stays in the list although its pod has ended, because a list must not become empty.
    unlisted = worker.name not in view.published_pods or view.published_pods == (worker.name,)
    return "failed" if due is not None and now >= due and unlisted else ""


def _probe_at(view: JobView, worker: Worker, *, now: float) -> float | None:
    left = history.left(view, worker, now=now)
    if worker.name in view.published_pods or left is None or not worker.running or worker.opaque:
        return None
    if drain_began(view, left, now=now) is None:
        return None  # the touch comes first, for looks into many workers would only hold it and the deletions up
    asked = worker.probe.asked_at
    if not 0.0 < asked <= now:
        return left.at
    return asked + (PROBE_SOON if asked - left.at < PROBE_SOON_FOR else PROBE_LATER)


def _deadline(view: JobView, worker: Worker, *, now: float) -> float | None:
    if worker.terminated and worker.index < view.replicas:
        return failed_workers.due_at(view, worker, now=now)
    left = history.left(view, worker, now=now)
    began = drain_began(view, left, now=now) if left else None
    return None if began is None else began + view.policy.drain_timeout


def _removal(view: JobView, worker: Worker, outcome: str, *, now: float) -> Removal:
    left = view.memory.left.get(worker.name)
    waited = durations.render(max(0.0, now - left.at)) if left else "0s"
    limit = durations.render(view.policy.drain_timeout)
    reason, why, warning = {
        "finished": ("SurplusDeleted", f"the job has ended and cleanPodPolicy is {view.clean_pod_policy}", False),
        "idle": ("SurplusDeleted", "no rank runs in it", False),
        "unused": ("SurplusDeleted", "it was never in discover_hosts.sh", False),
        "unscheduled": ("SurplusDeleted", "no node had taken it, so nothing ran in it", False),
        "drained": ("SurplusDeleted", f"drained after {waited}", False),
        "timeout": ("DrainTimeout", f"its drain-timeout of {limit} has passed; {_cut(worker.probe)}", True),
        "failed": ("WorkerReplaced", _failure(worker), True),
    }[outcome]
    if worker.index < view.replicas and not worker.terminated:
        reason = reason if warning else "WorkerReplaced"
        why = f"{why}; {disruption.cause(worker)}, so the operator creates it anew, elsewhere"
    state = f" (last state: {worker.last_state})" if worker.last_state else ""
    message = f"deleting {worker.name}: {why}{state}"
    return Removal(worker=worker, outcome=outcome, note=Note(reason=reason, message=message, warning=warning))


def _failure(worker: Worker) -> str:
    if not worker.out_of_memory:
        return "it failed; the operator creates it anew"
    return (
        "it ran out of memory (OOMKilled); the operator creates it anew, with the same limit: raise "
        "resources.limits.memory in the job's worker template, or let a rank use less, such as by a smaller batch"
    )


def _cut(probe: Probe) -> str:
    if probe.idle_at is not None:
        return "no rank was seen in it of late"
    if probe.busy_seen:
        return "ranks in it were cut"
    return "no look into it by exec told whether ranks ran in it; if so, they were cut"

"""Workers that leave: which may be deleted now, and which must be probed first.

Safety rules 2 and 3. A worker is deletable once discover_hosts.sh no longer names it and nothing
trains in it. Each of these is enough:
- its node is gone;
- the pod has terminated;
- no driver can run;
- no node had taken its pod;
- it was never named;
- exec has shown nothing but its main process since the launcher knows that it leaves; or
  elastic.sh, if it is the driver, has acknowledged a list without the worker;
- its drain deadline has passed;
- somebody waits for it, and for the drain-timeout its launcher could not be told (see overdue).

As long as nothing is known of the list before this one, only the first three hold: any worker may
have been named a moment ago.

A worker that the size asks for again does not leave, so a scale-out cancels a drain by itself. A
node that is to stay after all cancels a drain, too (see disruption).

A pod that somebody else deletes (an eviction, a preemption, a user) is probed too, because its
successor may have its host name only if the pod has drained. A second deletion with a shorter grace
period has no effect: the kubelet ignores it once the pod is stopping
(docs/decisions/0031-workers-end-with-their-ranks.md). The pod's main process ends by itself when it
sees the last rank leave. An evicted worker has drained before, so its main process sees no rank
leave, and the controller tells the process to end.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.decide import moves, overdue
from mpijob_elastic.decide.actions import Note, ReleaseWorker, Removal, normal
from mpijob_elastic.decide.state import (
    SETTLE,
    SKEW,
    Drain,
    Goal,
    JobState,
    Moment,
    WorkerState,
    honest,
)
from mpijob_elastic.decide.step import first_after
from mpijob_elastic.decide.wishes import Release
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left
from mpijob_elastic.model.pod import Probe, Worker

# A look counts only so many seconds after the launcher was shown the list. Until then the driver
# may start a rank in the worker: it reads the list up to 1.7 s later (see host_list), and its exec
# takes a moment to show. If a rank was seen to end, the driver has most likely read the list; if
# the main process saw the last rank leave, no rank can start.
QUIET_AFTER_BUSY = 2.0
QUIET_WITHOUT_BUSY = 5.0
# Seconds between two probes of a leaving worker: PROBE_SOON in the first PROBE_SOON_FOR seconds,
# when a rank usually ends, and PROBE_LATER after that.
PROBE_SOON = 0.5
PROBE_LATER = 2.0
PROBE_SOON_FOR = 10.0
# The longest pause between two probes of a worker that does not answer, because its shell hangs or
# exec is refused.
PROBES_APART = 30.0
# The grace period, in seconds, of a worker in which no rank has anything left to do. [operator] Its
# main process is `sleep`, which as process 1 ignores SIGTERM and would hold the GPUs for the usual
# 30 s. A kubelet makes the period 2 s (kuberuntime_manager.go, minimumGracePeriodInSeconds); with 0
# the pod would go before its containers.
GRACE = 1
# Seconds from the end of a job until we delete its workers if the operator has not done so.
OPERATOR_WITHIN = 30.0
_WITHOUT_RANKS = ("drained", "timeout", "unused", "suspended")
_OUT_OF_MEMORY = (
    "it ran out of memory (OOMKilled); the operator recreates it with the same limit. Raise "
    "resources.limits.memory in the job's worker template, or use less memory per rank, such as a "
    "smaller batch"
)


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """The actions that are due for leaving workers, highest index first."""

    #: The workers to delete now.
    removals: tuple[Removal, ...] = ()
    #: The marks for workers that may be evicted now.
    released: tuple[ReleaseWorker, ...] = ()
    #: The workers that have drained and that an eviction has deleted since: their main process is
    #: to be told.
    evicted: tuple[Worker, ...] = ()
    #: The workers to probe now.
    probes: tuple[Worker, ...] = ()
    #: The time at which to look again (seconds since the epoch); None if only a change matters.
    wake_at: float | None = None


def is_watched(worker: WorkerState, *, now: float) -> bool:
    """Tell whether to probe a pod that is being deleted.

    It may still drain unseen, or it has drained and its main process is to be told.
    """
    facts = worker.pod.facts
    if not facts.deleting or facts.ends_at is None or now >= facts.ends_at:
        return False
    if worker.pod.terminated or facts.node_gone_at:
        return False
    if _has_drained(worker):
        return _is_to_be_told(worker)
    # We have deleted it, or somebody in a hurry: its ranks are killed before a look could find that
    # they have left.
    return facts.grace is None or facts.grace > GRACE


def _has_drained(worker: WorkerState) -> bool:
    return worker.drain is not None and worker.drain.drained


def _is_to_be_told(worker: WorkerState) -> bool:
    """Tell whether the main process is to be told, by exec, that its worker has drained.

    It is so if the pod drained before its deletion: its main process waits in vain for a rank.
    """
    return worker.release is not None and _has_drained(worker) and not worker.pod.probe.told


def deadline(view: JobView, counts_from: float) -> float:
    """Return the time from which a worker may be deleted whatever runs in it.

    `counts_from` is the time from which the launcher knows that the worker leaves, or from which
    this process has known that if it is later.
    """
    return counts_from + view.policy.drain_timeout


def left(moment: Moment, worker: Worker) -> Left | None:
    """Return the record of this pod's leaving; None if no driver can ever have seen it listed.

    A driver that still has the old list may take the pod for an earlier pod of the same name.
    """
    found = moment.view.memory.left.get(worker.name)
    if found is None or found.pod == worker.fingerprint:
        return found
    known = moment.known_since(found)
    if known is None or worker.facts.created_at <= known + SETTLE + SKEW:
        return found
    if is_acknowledging(moment) and not _has_read(moment, found):
        return found
    return None


def of_worker(moment: Moment, worker: Worker) -> Drain | None:
    """Return the drain of an unlisted worker; None if no driver can have seen it listed."""
    found = left(moment, worker)
    if found:
        return of(moment, worker.name, found, worker.probe)
    return None


def begun(moment: Moment) -> AbstractSet[tuple[str, float]]:
    """Return each drain that has begun: the pod, and the time from which the launcher knows it."""
    if not moment.drains_count:
        return frozenset()
    times = {pod: moment.known_since(found) for pod, found in moment.view.memory.left.items()}
    return {(pod, at) for pod, at in times.items() if at is not None}


def of(moment: Moment, pod: str, found: Left, probe: Probe) -> Drain:
    """Return the drain of a pod that left the list; `probe` is the result of probing it since."""
    began = moment.known_since(found) if moment.drains_count else None
    if began is None:
        return Drain(since=found.at)
    counts_from = began
    if moment.view.drains_seen is not None:
        # The drain counts from the moment at which this process first saw it, if that is later than
        # `began`: clocks step and differ.
        seen_for = moment.view.drains_seen.get((pod, began), 0.0)
        counts_from = max(began, moment.now - seen_for)
    return Drain(
        since=found.at,
        began=began,
        deadline=deadline(moment.view, counts_from),
        drained=_has_emptied(moment, pod, found, probe, since=counts_from),
    )


def _has_emptied(moment: Moment, pod: str, found: Left, probe: Probe, *, since: float) -> bool:
    """Tell whether nothing trains any more in a pod whose drain counts from `since`."""
    if not is_acknowledging(moment):
        return _was_idle(probe, since=since, now=moment.now)
    last = moment.view.acknowledged
    # An earlier look may have seen the file of a list whose number was given twice.
    if last.asked_at < since:
        return False
    return last.shows_empty(pod, since=found.list)


def is_acknowledging(moment: Moment) -> bool:
    """Tell whether a driver runs that acknowledges lists; before that, looks into workers count."""
    return moment.view.driver.acknowledges and moment.view.driver_running


def _has_read(moment: Moment, found: Left) -> bool:
    """Tell whether the driver has acknowledged the list with which a pod left, or a later one."""
    return moment.view.acknowledged.number >= found.list


def _was_idle(probe: Probe, *, since: float, now: float) -> bool:
    """Tell whether a look that counts has found nothing, since the launcher knows of the drain."""
    if probe.idle_at is None:
        return False
    quiet = QUIET_AFTER_BUSY if probe.rank_seen else QUIET_WITHOUT_BUSY
    if probe.left:
        quiet = 0.0
    # A look that lies in the future was made before the clock was set back.
    return since + quiet <= probe.idle_at <= now


def may_be_busy(moment: Moment, worker: WorkerState) -> bool:
    """Tell whether a rank may still run in a leaving worker."""
    if worker.drain is None or worker.drain.began is None or not worker.pod.running:
        return False
    if is_acknowledging(moment):
        return not worker.drain.drained
    if worker.pod.opaque:
        return True
    probe = worker.pod.probe
    return probe.asked_at > 0.0 and probe.idle_at is None


def is_over(state: JobState, worker: WorkerState) -> bool:
    """Tell whether a leaving worker is being deleted, and its ranks have saved or had their time.

    Somebody else may delete a worker while its ranks save.
    """
    if not worker.pod.facts.deleting:
        return False
    if worker.drain is None or not worker.pod.running:
        return True
    return _why_drained(worker.drain, now=state.now) != ""


def leave(state: JobState) -> Leaving:
    """Return the workers to delete or probe now.

    Before a deletion the same is decided again from live objects.
    """
    if state.view.ended:
        return _leftovers(state)
    removals: list[Removal] = []
    released: list[ReleaseWorker] = []
    waiting: list[WorkerState] = []
    for worker in state.to_delete:
        outcome = _outcome(state, worker)
        if not outcome:
            waiting.append(worker)
        elif not worker.evicted:
            removals.append(_removal(state, worker, outcome))
        elif worker.release and not worker.release.done:
            released.append(_release(state, worker, worker.release, outcome))
    if state.overdue:
        removals += _hidden(state)
    rest = _waiting(state, waiting)
    return replace(rest, removals=tuple(removals), released=tuple(released))


def _release(state: JobState, worker: WorkerState, release: Release, outcome: str) -> ReleaseWorker:
    """Return the mark by which another controller may delete the worker."""
    _, why, _ = _reason(state, worker, outcome)
    note = normal("EvictionAllowed", f"{worker.name} may be evicted: {why}")
    return ReleaseWorker(ref=worker.pod.ref, key=release.annotation, text=release.mark, note=note)


def _waiting(state: JobState, workers: list[WorkerState]) -> Leaving:
    """Return the probes that are due of workers that may not be deleted yet, and the next time."""
    now = state.now
    probes: list[Worker] = []
    evicted: list[Worker] = []
    times: list[float | None] = []
    for worker in workers:
        probe_at = _probe_at(state, worker)
        times += [probe_at, worker.due_at]
        if worker.drain and not _is_replaced(worker):
            times.append(worker.drain.deadline)
        if probe_at is None or probe_at > now:
            continue
        if worker.pod.facts.deleting and _is_to_be_told(worker):
            evicted.append(worker.pod)
        else:
            probes.append(worker.pod)
    wake_at = first_after(now, times)
    return Leaving(probes=tuple(probes), evicted=tuple(evicted), wake_at=wake_at)


def _hidden(state: JobState) -> Iterator[Removal]:
    """Yield the deletions of workers that cannot be read and have to go now."""
    for pod in overdue.hidden(state):
        name = pod.metadata.name
        index = names.worker_index(name, job=state.view.name)
        if index is None:
            continue  # the launcher, see suspend.hidden
        message = f"{name} is being deleted: {_overdue(state)}"
        note = Note(reason="DrainTimeout", message=message, warning=True)
        worker = Worker(facts=pod, index=index, containers=())
        yield Removal(worker=worker, outcome="timeout", note=note, grace=GRACE)


def _leftovers(state: JobState) -> Leaving:
    """Return the workers to delete of an ended job, plain or elastic, in place of the operator.

    [operator] deletes only workers below `replicas`. After refusals of pods it comes up to 1,000 s
    late, and each event doubles its delay. It treats cleanPodPolicy Running as All.
    """
    view = state.view
    if view.facts.clean_pod_policy not in ("Running", "All"):
        return Leaving()
    left = [worker for worker in reversed(state.workers) if not worker.pod.facts.deleting]
    surplus = [worker for worker in left if view.facts.finished and not worker.wanted]
    if view.over_at is None:
        return Leaving(removals=_finished(state, surplus))
    late_at = honest(view.over_at, now=state.now) + OPERATOR_WITHIN
    if late_at > state.now:
        return Leaving(removals=_finished(state, surplus), wake_at=late_at)
    return Leaving(removals=_finished(state, left))


def _finished(state: JobState, workers: Iterable[WorkerState]) -> tuple[Removal, ...]:
    return tuple(_removal(state, worker, "finished") for worker in workers)


def _is_replaced(worker: WorkerState) -> bool:
    return worker.pod.terminated and worker.wanted


def is_unlisted(view: JobView, worker: WorkerState) -> bool:
    """Tell whether a worker that has ended is out of the list, or is the last host in the list.

    The last host stays listed, because no list becomes empty.
    """
    return not worker.published or len(view.host_of) == 1


def _outcome(state: JobState, worker: WorkerState) -> str:
    """Return the reason why the worker may be deleted now, in a word; "" if it may not be."""
    if worker.pod.facts.node_gone_at and _may_be_lost(state, worker):
        return "lost"
    if worker.pod.facts.deleting:
        return ""
    if worker.stopped or _is_replaced(worker):
        return _why_ended(state, worker)
    if state.overdue and overdue.is_wanted_back(state, worker.name):
        return "timeout"
    if worker.published or not _may_leave(state, worker):
        return ""
    return _why_safe(state, worker)


def _may_be_lost(state: JobState, worker: WorkerState) -> bool:
    """Tell whether a worker whose node is gone is known to be out of the list."""
    if state.view.driver_may_run and not state.memory_known:
        return False
    return is_unlisted(state.view, worker)


def _why_ended(state: JobState, worker: WorkerState) -> str:
    if not _is_due(state, worker):
        return ""
    if worker.stopped:
        # A stopped job has no launcher that could read the list.
        if state.overdue or not worker.published:
            return "suspended"
        return ""
    if is_unlisted(state.view, worker):
        return "failed"
    return ""


def _may_leave(state: JobState, worker: WorkerState) -> bool:
    """Tell whether no back-off keeps an unlisted worker.

    Surplus workers have no back-off unless the operator makes them again. Workers on a node that is
    about to go leave only after their back-off.
    """
    if worker.evicted or _is_due(state, worker):
        return True
    return not worker.wanted and worker.pod.index not in state.view.skips


def _is_due(state: JobState, worker: WorkerState) -> bool:
    return worker.due_at is not None and state.now >= worker.due_at


def _why_safe(state: JobState, worker: WorkerState) -> str:
    if worker.pod.terminated or not state.view.driver_may_run:
        return "idle"
    if not state.memory_known:
        # Until our first write nobody knows whether the worker was published a moment ago.
        return ""
    if worker.pod.unscheduled:
        # If a node takes the pod meanwhile, the pod's new version refuses the deletion.
        return "unscheduled"
    if worker.drain is None:
        return "unused"
    return _why_drained(worker.drain, now=state.now)


def _why_drained(drain: Drain, *, now: float) -> str:
    if drain.drained:
        return "drained"
    if drain.deadline is None or now < drain.deadline:
        return ""
    return "timeout"


def _probe_at(state: JobState, worker: WorkerState) -> float | None:
    """Return the time of the next probe; None if exec into the worker could show nothing."""
    drain, pod, now = worker.drain, worker.pod, state.now
    if drain is None or drain.began is None:
        # The touch comes first: looks into many workers would only delay it and the deletions.
        return None
    if pod.opaque or not pod.running:
        return None
    asked_at, failed = pod.probe.asked_at, pod.probe.failed
    if pod.facts.deleting and not failed and _is_to_be_told(worker):
        return drain.since
    if is_acknowledging(state):
        return None  # the driver says so (driver_looks)
    if not 0.0 < asked_at <= now:
        return drain.since
    usual = PROBE_SOON if asked_at - drain.since < PROBE_SOON_FOR else PROBE_LATER
    return asked_at + probe_pause(usual, failed, most=PROBES_APART)


def probe_pause(usual: float, failed: int, *, most: float) -> float:
    """Return the seconds between two probes.

    The pause is `usual` up to one failure, then twice as long after each further failure in a row,
    and at most `most`.
    """
    return min(usual * 2.0 ** min(max(failed - 1, 0), 16), most)


def _removal(state: JobState, worker: WorkerState, outcome: str) -> Removal:
    pod = worker.pod
    reason, why, warning = _reason(state, worker, outcome)
    if _is_recreated(worker, outcome):
        reason = reason if warning else "WorkerReplaced"
        why = f"{why}; the operator recreates it{_where(worker, outcome)}"
    last = f" (last state: {pod.facts.last_state})" if pod.facts.last_state else ""
    message = f"{worker.name} is being deleted: {why}{last}"
    note = Note(reason=reason, message=message, warning=warning)
    return Removal(worker=pod, outcome=outcome, note=note, grace=_grace(pod, outcome))


def _grace(pod: Worker, outcome: str) -> int | None:
    """Return the grace period in seconds; None for the pod's own."""
    if outcome == "lost":
        return 0  # no kubelet is left to confirm that the pod has ended
    if pod.facts.pre_stop:
        return None
    if outcome in _WITHOUT_RANKS:
        return GRACE
    return None


def _is_recreated(worker: WorkerState, outcome: str) -> bool:
    """Tell whether a worker that may run is made again."""
    if worker.stopped or not worker.wanted:
        return False
    return outcome != "finished" and not worker.pod.terminated


def _where(worker: WorkerState, outcome: str) -> str:
    if worker.goal is Goal.REPLACE and worker.leave:
        return f", {worker.leave.why}"
    if outcome == "lost":
        return " elsewhere"
    return f" elsewhere ({moves.cause(worker)})"


def _reason(state: JobState, worker: WorkerState, outcome: str) -> tuple[str, str, bool]:
    """Return the reason of the Event, the reason in words, and True for a warning."""
    match outcome:
        case "finished":
            why = _ended(state, worker)
        case "suspended":
            return "WorkerSuspended", "the job is suspended", False
        case "idle":
            why = "no rank runs in it"
        case "unused":
            why = "it was never listed in discover_hosts.sh"
        case "unscheduled":
            why = "it was never scheduled to a node"
        case "lost":
            why = f"its node {worker.pod.facts.node} is gone"
        case "drained":
            left = state.view.memory.left.get(worker.name)
            took = max(0.0, state.now - left.at) if left else 0.0
            why = f"drained after {phrases.duration(took)}"
        case "timeout":
            return "DrainTimeout", _timed_out(state, worker), True
        case _:
            return "WorkerReplaced", _failed(worker), True
    return "SurplusDeleted", why, False


def _ended(state: JobState, worker: WorkerState) -> str:
    why = f"the job has ended, cleanPodPolicy is {state.view.facts.clean_pod_policy}"
    if worker.wanted:
        return f"{why} and the operator has not deleted it"
    return why


def _failed(worker: WorkerState) -> str:
    if worker.pod.facts.out_of_memory:
        return _OUT_OF_MEMORY
    return "it failed; the operator recreates it"


def _timed_out(state: JobState, worker: WorkerState) -> str:
    if state.overdue and overdue.goes(state, worker.name):
        return _overdue(state)
    limit, probe = phrases.duration(state.view.policy.drain_timeout), worker.pod.probe
    cut = "exec could not show whether ranks run in it; any that do are killed"
    if is_acknowledging(state):
        driver = state.view.driver.words
        cut = f"{driver} has not acknowledged a list without it; ranks that run in it are killed"
    if probe.idle_at is not None:
        cut = "no rank was seen in it recently"
    elif probe.busy_seen:
        cut = "its ranks are killed"
    return f"its drain-timeout of {limit} is over; {cut}"


def _overdue(state: JobState) -> str:
    limit = phrases.duration(state.view.policy.drain_timeout)
    return (
        f"it has to go, and for its drain-timeout of {limit} the launcher could not be told that "
        "it leaves; its ranks are killed"
    )

"""Workers that leave: which may be deleted now, and which must be probed first.

Safety rules 2 and 3. A worker is deletable once discover_hosts.sh no longer names it and nothing
trains in it. Each of these is enough:
- it was never named;
- no node had taken its pod, or its node is gone;
- the pod has terminated;
- no driver can run;
- exec has shown nothing but its main process since the launcher knows that it leaves;
- its drain deadline has passed;
- somebody waits for it, and for the drain-timeout its launcher could not be told (see overdue).

A worker that the size asks for again does not leave, so a scale-out cancels a drain by itself. A
node that is to stay after all cancels a drain, too (see disruption).

A pod that somebody else deletes (an eviction, a preemption, a user) is probed too, because its
successor may have its host name only if the pod has drained. A second deletion with a shorter grace
period has no effect: the kubelet ignores it once the pod is stopping
(docs/decisions/0031-workers-end-with-their-ranks.md). The pod's main process ends by itself when it
sees the last rank leave. An evicted worker has drained before, so its main process sees no rank
leave, and the controller tells the process to end.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import moves, overdue
from mpijob_elastic.decide.actions import Note, ReleaseWorker, Removal, normal
from mpijob_elastic.decide.state import SETTLE, SKEW, Drain, JobState, Moment, WorkerState, honest
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
    pod = worker.pod
    is_over = (
        pod.terminated
        or pod.facts.node_gone_at
        or pod.facts.ends_at is None
        or now >= pod.facts.ends_at
    )
    return (
        pod.facts.deleting and not is_over and (not _has_drained(worker) or _is_to_be_told(worker))
    )


def _has_drained(worker: WorkerState) -> bool:
    return worker.drain is not None and worker.drain.drained


def _is_to_be_told(worker: WorkerState) -> bool:
    """Tell whether the main process is to be told, by exec, that its worker has drained.

    It is so if the pod drained before its deletion: its main process waits in vain for a rank.
    """
    return worker.release is not None and _has_drained(worker) and not worker.pod.probe.told


def deadline(view: JobView, began: float) -> float:
    """Return the time from which a worker may be deleted whatever runs in it.

    `began` is the time from which the launcher knows that the worker leaves.
    """
    return began + view.policy.drain_timeout


def left(moment: Moment, worker: Worker) -> Left | None:
    """Return the record of this pod's leaving; None if no driver can ever have seen it listed.

    A driver that still has the old list may take the pod for an earlier pod of the same name.
    """
    found = moment.view.memory.left.get(worker.ref.name)
    if found is None or found.pod == worker.fingerprint:
        return found
    known = moment.known_since(found)
    return None if known is not None and worker.facts.created_at > known + SETTLE + SKEW else found


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
    seen = moment.view.drains_seen
    # The drain counts from the moment at which this process first saw it, if that is later than
    # `began`: clocks step and differ.
    seen_at = began if seen is None else max(began, moment.now - seen.get((pod, began), 0.0))
    quiet = 0.0 if probe.left else QUIET_AFTER_BUSY if probe.busy_seen else QUIET_WITHOUT_BUSY
    # A look that lies in the future was made before the clock was set back.
    drained = probe.idle_at is not None and seen_at + quiet <= probe.idle_at <= moment.now
    return Drain(
        since=found.at, began=began, deadline=deadline(moment.view, seen_at), drained=drained
    )


def may_be_busy(worker: WorkerState) -> bool:
    """Tell whether a rank may still run in a leaving worker."""
    if worker.drain is None or worker.drain.began is None or not worker.pod.running:
        return False
    probe = worker.pod.probe
    return worker.pod.opaque or (probe.asked_at > 0.0 and probe.idle_at is None)


def leave(state: JobState) -> Leaving:
    """Return the workers to delete or probe now.

    Before a deletion the same is decided again from live objects.
    """
    if state.view.ended:
        return _leftovers(state)
    found: list[Removal] = []
    released: list[ReleaseWorker] = []
    probes: list[Worker] = []
    evicted: list[Worker] = []
    wakes: list[float] = []
    for worker in state.leaving:
        if outcome := _outcome(state, worker):
            if not worker.evicted:
                found.append(_removal(state, worker, outcome))
            elif worker.release and not worker.release.done:
                note = normal(
                    "EvictionAllowed",
                    f"{worker.name} may be evicted: {_reason(state, worker, outcome)[1]}",
                )
                mark = worker.release
                released.append(
                    ReleaseWorker(
                        ref=worker.pod.ref, key=mark.annotation, text=mark.mark, note=note
                    )
                )
            continue
        probe_at = _probe_at(worker, now=state.now)
        if probe_at is not None and probe_at <= state.now:
            (evicted if worker.pod.facts.deleting and _is_to_be_told(worker) else probes).append(
                worker.pod
            )
        deadline_at = worker.drain.deadline if worker.drain and not _is_replaced(worker) else None
        wakes += [
            at for at in (probe_at, deadline_at, worker.due_at) if at is not None and at > state.now
        ]
    if state.overdue:
        found += _hidden(state)
    return Leaving(
        removals=tuple(found),
        released=tuple(released),
        evicted=tuple(evicted),
        probes=tuple(probes),
        wake_at=min(wakes, default=None),
    )


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
    due_at = None if view.over_at is None else honest(view.over_at, now=state.now) + OPERATOR_WITHIN
    is_late = due_at is not None and due_at <= state.now
    left = (
        worker
        for worker in reversed(state.workers)
        if is_late or (view.facts.finished and not worker.wanted)
    )
    gone = tuple(
        _removal(state, worker, "finished") for worker in left if not worker.pod.facts.deleting
    )
    return Leaving(removals=gone, wake_at=None if is_late else due_at)


def _is_replaced(worker: WorkerState) -> bool:
    return worker.pod.terminated and worker.wanted


def is_unlisted(view: JobView, worker: WorkerState) -> bool:
    """Tell whether a worker that has ended is out of the list, or is the last host in the list.

    The last host stays listed, because no list becomes empty.
    """
    return not worker.published or len(view.host_of) == 1


def _outcome(state: JobState, worker: WorkerState) -> str:
    """Return the reason why the worker may be deleted now, in a word; "" if it may not be."""
    is_due = worker.due_at is not None and state.now >= worker.due_at
    unlisted = is_unlisted(state.view, worker)
    if (
        worker.pod.facts.node_gone_at
        and unlisted
        and (state.memory_known or not state.view.driver_may_run)
    ):
        return "lost"
    if worker.pod.facts.deleting:
        return ""
    if worker.stopped or _is_replaced(worker):
        # A stopped job has no launcher that could read the list.
        reason, is_out = (
            ("suspended", not worker.published or state.overdue)
            if worker.stopped
            else ("failed", unlisted)
        )
        return reason if is_due and is_out else ""
    if state.overdue and overdue.is_wanted_back(state, worker.name):
        return "timeout"
    # Surplus workers have no back-off unless the operator makes them again. Workers on a node that
    # is about to go leave only after their back-off.
    again = worker.wanted or worker.pod.index in state.view.skips
    if worker.published or (again and not (is_due or worker.evicted)):
        return ""
    return _why_safe(state, worker)


def _why_safe(state: JobState, worker: WorkerState) -> str:
    if worker.pod.terminated or not state.view.driver_may_run:
        return "idle"
    if not state.memory_known:
        # Until our first write nobody knows whether the worker was published a moment ago.
        return ""
    if worker.pod.unscheduled:
        # If a node takes the pod meanwhile, the pod's new version refuses the deletion.
        return "unscheduled"
    drain = worker.drain
    if drain is None:
        return "unused"
    if drain.drained:
        return "drained"
    return "timeout" if drain.deadline is not None and state.now >= drain.deadline else ""


def _probe_at(worker: WorkerState, *, now: float) -> float | None:
    drain, pod = worker.drain, worker.pod
    if drain is None or drain.began is None or not pod.running or pod.opaque:
        # The touch comes first: looks into many workers would only delay it and the deletions.
        return None
    asked, failed = pod.probe.asked_at, pod.probe.failed
    if not 0.0 < asked <= now or (pod.facts.deleting and not failed and _is_to_be_told(worker)):
        return drain.since
    usual = PROBE_SOON if asked - drain.since < PROBE_SOON_FOR else PROBE_LATER
    return asked + probe_pause(usual, failed, most=PROBES_APART)


def probe_pause(usual: float, failed: int, *, most: float) -> float:
    """Return the seconds between two probes.

    The pause is `usual` up to one failure, then twice as long after each further failure in a row,
    and at most `most`.
    """
    return min(usual * 2.0 ** min(max(failed - 1, 0), 16), most)


def _removal(state: JobState, worker: WorkerState, outcome: str) -> Removal:
    pod = worker.pod
    reason, why, warning = _reason(state, worker, outcome)
    if worker.wanted and not (pod.terminated or worker.stopped or outcome == "finished"):
        reason = reason if warning else "WorkerReplaced"
        cause = "" if outcome == "lost" else f" ({moves.cause(worker)})"
        why = (
            f"{why}; the operator recreates it"
            f"{f', {worker.astray}' if worker.astray else f' elsewhere{cause}'}"
        )
    last = f" (last state: {pod.facts.last_state})" if pod.facts.last_state else ""
    message = f"{worker.name} is being deleted: {why}{last}"
    note = Note(reason=reason, message=message, warning=warning)
    grace = GRACE if outcome in _WITHOUT_RANKS and not pod.facts.pre_stop else None
    if outcome == "lost":
        grace = 0  # no kubelet is left to confirm that the pod has ended
    return Removal(worker=pod, outcome=outcome, note=note, grace=grace)


def _reason(state: JobState, worker: WorkerState, outcome: str) -> tuple[str, str, bool]:
    """Return the reason of the Event, the reason in words, and True for a warning."""
    match outcome:
        case "finished":
            late = " and the operator has not deleted it" if worker.wanted else ""
            why = f"the job has ended, cleanPodPolicy is {state.view.facts.clean_pod_policy}{late}"
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
            why = (
                f"drained after {phrases.duration(max(0.0, state.now - left.at) if left else 0.0)}"
            )
        case "timeout":
            return "DrainTimeout", _timed_out(state, worker), True
        case _:
            why = (
                _OUT_OF_MEMORY
                if worker.pod.facts.out_of_memory
                else "it failed; the operator recreates it"
            )
            return "WorkerReplaced", why, True
    return "SurplusDeleted", why, False


def _timed_out(state: JobState, worker: WorkerState) -> str:
    if state.overdue and overdue.goes(state, worker.name):
        return _overdue(state)
    limit, probe = phrases.duration(state.view.policy.drain_timeout), worker.pod.probe
    cut = "exec could not show whether ranks run in it; any that do are killed"
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

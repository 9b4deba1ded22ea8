"""What a job in a queue of Kueue tells its user.

The numbers in Kueue's words change with every try, and each change of a notice is a write and an
Event. So only `explain` shows the numbers.
"""

import re
from collections.abc import Iterator

from mpijob_elastic.capabilities.kueue import wishes
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS, Queue, Workload
from mpijob_elastic.decide.actions import Note, normal, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed

# A number or quantity by itself, not a part of a name.
_NUMBER = re.compile(r"(?<![\w./-])\d[\d.]*(?:[numkMGTPE]i?)?(?![\w/-]|\.\w)")
# What Kueue says of a queue whose name is wrong.
_UNKNOWN_QUEUE = re.compile(r"LocalQueue \S+ doesn't exist")
# Characters of Kueue's words, without numbers, that a notice shows: fewer than are kept, because
# long numbers leave less text of the words that are kept.
_LONGEST_STEADY = 200

# What a user can do about pods that are not ready in time.
_SLOW = (
    "its pods were not ready in the time that Kueue allows: if its images or nodes are slow, have "
    "the administrator raise waitForPodsReady.timeout in Kueue's configuration"
)


def notes(state: JobState, queue: Queue) -> Iterator[Note]:
    """Yield notices on what the job waits for, in Kueue's words."""
    view, base = state.view, queue.base(state.view.name)
    if queue.ignored:
        yield _ignored(view, queue)
    if not queue.name or base is None:
        return
    if base.queue != queue.name and base.reserved:
        message = (
            f"{view.name} keeps its quota of queue {base.queue}; to move it to queue "
            f"{queue.name}, suspend and resume the job"
        )
        yield normal("QueueUnchanged", message)
    yield from _unchanged(state, queue, base)
    if base.preempted and not state.wishes.suspend:
        yield _wanted(view.name, base, leaves=False)
    elif _lacks(base):
        yield _waiting(state, queue, "Queued", f"{view.name} waits", base)
    if outside := [pod.ref.name for pod in view.pods if wishes.is_outside(view, queue, pod)]:
        why = "created while the webhook was away, or before the job had its label"
        yield warning(
            "OutsideQuota", f"{listed(outside)} running without quota of queue {base.queue}: {why}"
        )
    yield from _of_extras(state, queue, base)


def _ignored(view: JobView, queue: Queue) -> Note:
    why = (
        f"the cluster does not serve {WORKLOADS.api_version}: Kueue is not "
        "installed, or older than 0.15"
    )
    return warning(
        "QueueIgnored", f"{view.name} starts without quota of queue {queue.ignored}, because {why}"
    )


def _of_extras(state: JobState, queue: Queue, base: Workload) -> Iterator[Note]:
    """Yield notices on extras that wait, and on those whose quota is wanted back."""
    view = state.view
    extras: dict[str, Workload] = {}
    for worker in view.workers:
        found = queue.workloads.get(worker.name)
        if found and wishes.is_extra(view, base, worker):
            extras[worker.name] = found
    held = {worker.name for worker in view.workers if worker.facts.held_back}
    waiting = [pod for pod, found in extras.items() if pod in held and _lacks(found)]
    if base.granted and waiting:
        pods, first = listed(waiting), extras[waiting[0]]
        yield _waiting(state, queue, "WorkersQueued", f"{pods} waiting", first)
    wanted_back = [worker for worker in view.workers if wishes.is_taken_back(view, queue, worker)]
    taken = [worker.name for worker in wanted_back if worker.name in extras]
    if taken:
        yield _wanted(listed(taken), extras[taken[0]], leaves=view.elastic)


def no_class(view: JobView, name: str) -> Note:
    """Return the Event on a priority class that does not exist."""
    return warning(
        "PriorityClassMissing",
        f"{view.name} is not queued: WorkloadPriorityClass {name} does not exist",
    )


def _lacks(found: Workload) -> bool:
    """Tell whether a Workload says why its pods may not start yet."""
    return found.said != "" and (found.checked or not found.reserved)


def wait(found: Workload, *, now: float) -> str:
    """Return the sentence that a job waits for the quota of a Workload at time `now`."""
    said = f"the job waits for quota of queue {found.queue}"
    if found.is_unanswered(now=now):
        return f"{said}; {wishes.UNANSWERED}"
    return f"{said}: {found.line}" if found.said else said


def look(view: JobView, found: Workload, *, now: float) -> str:
    """Return the command that shows more of a Workload that waits at time `now`."""
    if found.is_unanswered(now=now):
        return "kubectl get pods -A | grep kueue"
    if _UNKNOWN_QUEUE.search(found.line):
        return f"kubectl -n {view.namespace} get localqueues"
    return f"kubectl -n {view.namespace} describe workload {found.metadata.name}"


def _waiting(state: JobState, queue: Queue, reason: str, who: str, found: Workload) -> Note:
    place = queue.places.get(found.metadata.uid)
    steady = _NUMBER.sub("…", found.line)[:_LONGEST_STEADY]
    waits = f"{who} in queue {found.queue}"
    detail = [f"at place {place}"] if place else []
    detail += [_SLOW] if found.late else []
    detail += [_other_queue(state.view)] if _UNKNOWN_QUEUE.search(found.line) else []
    return normal(
        reason,
        f"{waits}: {steady}",
        next_step=look(state.view, found, now=state.now),
        detail="; ".join(detail),
        exact=f"{waits}: {found.line}",
    )


def _other_queue(view: JobView) -> str:
    """Return how to give a job the name of another queue."""
    label = f"kubectl -n {view.namespace} label mpijob {view.name} {LABEL_QUEUE}=QUEUE --overwrite"
    return f"to give it another queue, type `{label}`"


def _wanted(whose: str, found: Workload, *, leaves: bool) -> Note:
    said = f": {found.line}" if found.said else ""
    why, back = "Kueue wants the quota for others", "for others"
    if found.late:
        why, back = "not ready in the time that Kueue allows", "back"
    if leaves:
        return normal("QuotaWanted", f"{whose} leaving: {why}{said}")
    return warning("QuotaWanted", f"Kueue wants the quota of {whose} {back}{said}")


def _unchanged(state: JobState, queue: Queue, base: Workload) -> Iterator[Note]:
    """Yield a notice if the least size is not that of the quota.

    Without min-replicas, only a smaller least size counts.
    """
    view = state.view
    least = wishes.asked(view) if view.policy.min_replicas else min(view.replicas, base.workers)
    is_kept = (
        base.granted and view.facts.acts_elastic and not (state.wishes.suspend or queue.prebuilt)
    )
    if is_kept and least != base.workers:
        risk = ": Kueue may take back the quota above that" if least > base.workers else ""
        kept = (
            f"{view.name} keeps its quota for {base.workers} workers, although "
            f"its least size is {least} now"
        )
        yield normal("LeastUnchanged", f"{kept}{risk}; to ask again, suspend and resume the job")

"""A job's status as the operator derives it from its pods, and the Events it sends on the way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from lab.operator.job import LAUNCHER, WORKER, MPIJob
from lab.operator.wire import Condition, PodStatus, ReplicaStatus, Status

EVICTED = "Evicted"
JOB_EVICTED = "MPIJobEvicted"
JOB_FAILED = "MPIJobFailed"
JOB_RUNNING = "MPIJobRunning"


@dataclass(frozen=True, kw_only=True)
class Event:
    """An Event on the job; `type` is Normal or Warning."""

    type: str
    reason: str
    message: str


def created(job: MPIJob, now: str) -> tuple[Status, Event]:
    """Return what the operator notes when it sees a job for the first time since it was started."""
    message = f"MPIJob {job.namespace}/{job.name} is created."
    status = with_condition(job.status, type_="Created", reason="MPIJobCreated", message=message, now=now)
    return status, Event(type="Normal", reason="MPIJobCreated", message=message)


def observed(job: MPIJob, *, launcher: PodStatus, workers: Sequence[PodStatus], now: str) -> tuple[Status, list[Event]]:
    """Return the status after one look at the pods. Events are sent at every look, changed or not."""
    status, events = _with_launcher(job, launcher, now)
    status = with_replicas(status, WORKER, _counted(workers))
    evicted = sum(pod.phase == "Failed" and pod.reason == EVICTED for pod in workers)
    if evicted:
        message = f"{evicted}/{len(workers)} workers are evicted"
        status = with_condition(status, type_="Failed", reason=JOB_EVICTED, message=message, now=now)
        events.append(Event(type="Warning", reason=JOB_EVICTED, message=message))
    if all(pod.phase == "Running" for pod in [launcher, *workers]):
        message = f"MPIJob {job.namespace}/{job.name} is running"
        status = with_condition(status, type_="Running", reason=JOB_RUNNING, message=f"{message}.", now=now)
        events.append(Event(type="Normal", reason=JOB_RUNNING, message=message))
    return status, events


def _with_launcher(job: MPIJob, launcher: PodStatus, now: str) -> tuple[Status, list[Event]]:
    status = with_replicas(job.status, LAUNCHER, _counted([launcher]))
    subject = f"MPIJob {job.namespace}/{job.name}"
    if launcher.phase == "Succeeded":
        event = Event(type="Normal", reason="MPIJobSucceeded", message=f"{subject} successfully completed.")
        status = replace(status, completion_time=status.completion_time or now)
        return _with_end(status, "Succeeded", event, now), [event]
    if launcher.phase == "Failed":
        event = Event(type="Warning", reason=launcher.reason or JOB_FAILED, message=f"{subject} has failed")
        if launcher.reason == EVICTED:
            # The Event names the pod's reason, the condition the job's.
            return _with_end(status, "Failed", event, now, reason=JOB_EVICTED), [event]
        if not is_evicted(status):
            status = replace(status, completion_time=status.completion_time or now)
        return _with_end(status, "Failed", event, now), [event]
    return status, []


def _with_end(status: Status, type_: str, event: Event, now: str, *, reason: str = "") -> Status:
    return with_condition(status, type_=type_, reason=reason or event.reason, message=event.message, now=now)


def _counted(pods: Sequence[PodStatus]) -> ReplicaStatus:
    phases = Counter(pod.phase for pod in pods)
    return ReplicaStatus(active=phases["Running"], succeeded=phases["Succeeded"], failed=phases["Failed"])


def with_replicas(status: Status, role: str, counts: ReplicaStatus) -> Status:
    """Return the status with the counts of one role replaced."""
    return replace(status, replica_statuses={**(status.replica_statuses or {}), role: counts})


def with_condition(status: Status, *, type_: str, reason: str, message: str, now: str) -> Status:
    """Return the status with the condition True, as the last one; unchanged where it is True for this reason already.

    An end (Succeeded, Failed) makes Running, and an older Failed, False.
    """
    old = _condition(status, type_)
    if old and old.status == "True" and old.reason == reason:
        return status
    since = old.last_transition_time if old and old.status == "True" else now
    new = Condition(
        type=type_, status="True", reason=reason, message=message, last_update_time=now, last_transition_time=since
    )
    ended = {"Running", "Failed"} if type_ in {"Succeeded", "Failed"} else set()
    dropped = {type_, "Restarting"} if type_ == "Running" else {type_}
    others = [
        replace(condition, status="False") if condition.type in ended else condition
        for condition in status.conditions or ()
        if condition.type not in dropped
    ]
    return replace(status, conditions=(*others, new))


def _condition(status: Status, type_: str) -> Condition | None:
    return next((condition for condition in status.conditions or () if condition.type == type_), None)


def is_true(status: Status, type_: str) -> bool:
    """Whether the job has this condition."""
    condition = _condition(status, type_)
    return condition is not None and condition.status == "True"


def is_evicted(status: Status) -> bool:
    """Whether the job failed because a pod was evicted, so that the operator goes on with it."""
    condition = _condition(status, "Failed")
    return condition is not None and condition.status == "True" and condition.reason == JOB_EVICTED

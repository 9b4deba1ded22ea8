import pytest

from lab.operator import status
from lab.operator.status import observed, with_condition
from lab.operator.wire import PodStatus, ReplicaStatus, Status
from tests.tooling.lab_operator.objects import NOW, job

LATER = "2026-01-02T03:05:00Z"
RUNNING = PodStatus(phase="Running")
EVICTED = PodStatus(phase="Failed", reason="Evicted")


def _conditions(value: Status) -> list[str]:
    return [f"{condition.type}={condition.status} {condition.reason}" for condition in value.conditions or ()]


def _with(value: Status, type_: str, reason: str, now: str = NOW) -> Status:
    return with_condition(value, type_=type_, reason=reason, message="", now=now)


def test_runs_once_launcher_and_all_workers_run() -> None:
    new, events = observed(job(), launcher=RUNNING, workers=[RUNNING, RUNNING], now=NOW)
    assert _conditions(new) == ["Running=True MPIJobRunning"]
    assert new.replica_statuses == {"Launcher": ReplicaStatus(active=1), "Worker": ReplicaStatus(active=2)}
    assert [(event.type, event.reason, event.message) for event in events] == [
        ("Normal", "MPIJobRunning", "MPIJob ns/j is running")
    ]


def test_does_not_run_while_a_worker_is_pending() -> None:
    new, events = observed(job(), launcher=RUNNING, workers=[RUNNING, PodStatus()], now=NOW)
    assert (new.conditions, events) == (None, [])


def test_the_event_is_sent_again_though_nothing_changes() -> None:
    first, _ = observed(job(), launcher=RUNNING, workers=[RUNNING], now=NOW)
    again, events = observed(job(status=first), launcher=RUNNING, workers=[RUNNING], now=LATER)
    assert again == first
    assert [event.reason for event in events] == ["MPIJobRunning"]


def test_an_evicted_worker_fails_a_job_that_goes_on() -> None:
    running, _ = observed(job(), launcher=RUNNING, workers=[RUNNING, RUNNING], now=NOW)
    failed, events = observed(job(status=running), launcher=RUNNING, workers=[RUNNING, EVICTED], now=LATER)
    assert _conditions(failed) == ["Running=False MPIJobRunning", "Failed=True MPIJobEvicted"]
    assert [event.message for event in events] == ["1/2 workers are evicted"]
    assert status.is_evicted(failed)
    assert failed.completion_time is None


@pytest.mark.parametrize(
    ("launcher", "condition", "event", "ended"),
    [
        (PodStatus(phase="Succeeded"), "Succeeded=True MPIJobSucceeded", "Normal MPIJobSucceeded", NOW),
        (PodStatus(phase="Failed"), "Failed=True MPIJobFailed", "Warning MPIJobFailed", NOW),
        (PodStatus(phase="Failed", reason="OOM"), "Failed=True OOM", "Warning OOM", NOW),
        (EVICTED, "Failed=True MPIJobEvicted", "Warning Evicted", None),
    ],
)
def test_the_launchers_end_is_the_jobs(launcher: PodStatus, condition: str, event: str, ended: str | None) -> None:
    new, events = observed(job(), launcher=launcher, workers=[], now=NOW)
    assert _conditions(new) == [condition]
    assert [f"{event.type} {event.reason}" for event in events] == [event]
    assert new.completion_time == ended


def test_success_after_an_eviction_takes_the_failure_back() -> None:
    failed = _with(_with(Status(), "Running", "r"), "Failed", "MPIJobEvicted")
    assert _conditions(_with(failed, "Succeeded", "s")) == [
        "Running=False r",
        "Failed=False MPIJobEvicted",
        "Succeeded=True s",
    ]


def test_a_condition_true_for_the_same_reason_keeps_its_times() -> None:
    first = _with(Status(), "Running", "r")
    assert _with(first, "Running", "r", now=LATER) is first


def test_a_new_reason_keeps_the_time_of_transition() -> None:
    second = _with(_with(Status(), "Failed", "a"), "Failed", "b", now=LATER)
    assert second.conditions
    assert (second.conditions[0].last_transition_time, second.conditions[0].last_update_time) == (NOW, LATER)


def test_the_created_note_names_the_job() -> None:
    new, event = status.created(job(), NOW)
    assert _conditions(new) == ["Created=True MPIJobCreated"]
    assert event.message == "MPIJob ns/j is created."

import pytest
from msgspec.structs import replace

from lab.operator.job import MPIJob
from lab.operator.kinds import PODS, Resource
from lab.operator.pods import PodOptions
from lab.operator.status import created, observed, with_condition
from lab.operator.steps import Create, Delete, Fail, Send, Step, WriteStatus
from lab.operator.sync import Look, plan
from lab.operator.wire import Dependent, PodStatus, ReplicaStatus, Status
from tests.tooling.lab_operator.objects import NOW, job, owned, showing

RUNNING = [owned(name, phase="Running") for name in ("j-launcher", "j-worker-0", "j-worker-1")]


def _told(step: Step) -> str:
    match step:
        case Create(resource=resource, name=name):
            return f"create {resource.kind}/{name}"
        case Delete(resource=resource, name=name):
            return f"delete {resource.kind}/{name}"
        case Send(event=event):
            return f"send {event.reason}"
        case WriteStatus():
            return "write status"
        case Fail():
            return "fail"


def _plan(subject: MPIJob, look: Look, *, gang: str = "") -> list[str]:
    options = PodOptions(gang_scheduler=gang)
    return [_told(step) for step in plan(subject, look=look, options=options, now=NOW)]


def _ended(type_: str, **fields: str) -> Status:
    status = with_condition(Status(), type_=type_, reason=fields.pop("reason", type_), message="", now=NOW)
    return replace(status, completion_time=fields.get("completion_time"))


def test_a_new_job_gets_its_objects_in_this_order() -> None:
    assert _plan(job(), showing(others=False), gang="volcano") == [
        "create ConfigMap/j-config",
        "create ServiceAccount/j-launcher",
        "create Role/j-launcher",
        "create RoleBinding/j-launcher",
        "create PodGroup/j",
        "create Pod/j-worker-0",
        "create Pod/j-worker-1",
        "create Pod/j-launcher",
        "write status",
    ]


def test_a_job_at_rest_is_written_no_more_but_told_to_run() -> None:
    status, _ = created(job(), NOW)
    looked, _ = observed(
        job(status=replace(status, start_time=NOW)),
        launcher=PodStatus(phase="Running"),
        workers=[PodStatus(phase="Running")] * 2,
        now=NOW,
    )
    assert _plan(job(status=looked), showing(*RUNNING)) == ["send MPIJobRunning"]


@pytest.mark.parametrize("workers", [1, 3])
def test_missing_workers_are_created_and_surplus_ones_stay(workers: int) -> None:
    steps = _plan(job(workers=workers), showing(*RUNNING))
    assert [step for step in steps if "Pod/" in step] == ["create Pod/j-worker-2"] * (workers == 3)


def test_a_foreign_object_stops_the_sync_there() -> None:
    foreign = owned("j-worker-0", uid="another")
    steps = list(plan(job(), look=showing(foreign), options=PodOptions(), now=NOW))
    assert [_told(step) for step in steps] == ["send ErrResourceExists", "fail"]
    assert isinstance(steps[-1], Fail)
    assert steps[-1].message == 'Resource "j-worker-0" of Kind "" already exists and is not managed by MPIJob'


@pytest.mark.parametrize(
    ("policy", "deleted"),
    [
        ("Running", ["delete Pod/j-worker-0", "delete Pod/j-worker-1"]),
        ("All", ["delete Pod/j-worker-0", "delete Pod/j-worker-1"]),
        ("None", []),
        (None, []),
    ],
)
@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_an_ended_job_loses_its_workers_by_policy(policy: str | None, deleted: list[str], end: str) -> None:
    ended = job(cleanPodPolicy=policy, status=_ended(end, completion_time=NOW))
    surplus = owned("j-worker-2", phase="Running")
    assert _plan(ended, showing(*RUNNING, surplus)) == [*deleted, "write status"]


def test_only_success_deletes_the_pod_group() -> None:
    succeeded = job(cleanPodPolicy="All", status=_ended("Succeeded"))
    assert _plan(succeeded, showing(), gang="volcano") == ["delete PodGroup/j", "write status"]
    failed = job(cleanPodPolicy="All", status=_ended("Failed", completion_time=NOW))
    assert _plan(failed, showing(), gang="volcano") == ["write status"]


def test_an_evicted_job_goes_on_without_its_failed_launcher() -> None:
    evicted = job(status=_ended("Failed", reason="MPIJobEvicted"))
    assert "create Pod/j-launcher" in _plan(evicted, showing(*RUNNING[1:]))
    failed_launcher = owned("j-launcher", phase="Failed", reason="Evicted")
    steps = _plan(evicted, showing(failed_launcher))
    assert steps[:2] == ["delete Pod/j-launcher", "send Evicted"]


def test_nothing_is_created_once_the_launcher_has_ended() -> None:
    launcher = owned("j-launcher", phase="Succeeded")
    assert _plan(job(), showing(launcher, others=False)) == ["send MPIJobSucceeded", "write status"]


def test_a_job_being_deleted_is_left_alone() -> None:
    subject = job()
    leaving = replace(subject, metadata={**subject.metadata, "deletionTimestamp": NOW})
    assert _plan(leaving, showing(others=False)) == []


@pytest.mark.parametrize(
    ("roles", "flaw"),
    [
        ({}, "Launcher is missing"),
        ({"Launcher": {"template": {"spec": {"containers": []}}}}, "Launcher.template has no containers"),
        (
            {"Launcher": {"template": {"spec": {"containers": [{}]}}}, "Worker": {}},
            "Worker.replicas is missing",
        ),
    ],
)
def test_what_crashes_the_operator_only_fails_here(roles: dict[str, object], flaw: str) -> None:
    (step,) = plan(job(mpiReplicaSpecs=roles), look=showing(), options=PodOptions(), now=NOW)
    assert isinstance(step, Fail)
    assert flaw in step.message


def test_a_launchers_own_restart_policy_is_complained_of() -> None:
    spec = {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Always"}
    subject = job(mpiReplicaSpecs={"Launcher": {"template": {"spec": spec}}})
    assert _plan(subject, showing()) == [
        "send SettedPodTemplateRestartPolicy",
        "create Pod/j-launcher",
        "write status",
    ]


def test_each_step_looks_after_the_one_before_was_done() -> None:
    pods = {pod.metadata.name: pod for pod in RUNNING[:2]}

    def look(resource: Resource, name: str) -> Dependent | None:
        return pods.get(name) if resource == PODS else owned(name)

    steps = plan(job(workers=3), look=look, options=PodOptions(), now=NOW)
    assert _told(next(steps)) == "create Pod/j-worker-1"
    pods["j-worker-2"] = owned("j-worker-2", phase="Running")
    (last,) = steps
    assert isinstance(last, WriteStatus)
    assert last.status.replica_statuses
    assert last.status.replica_statuses["Worker"] == ReplicaStatus(active=2)

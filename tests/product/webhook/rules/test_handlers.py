"""Each request has its handler, and nothing unreadable is ever blocked."""

import pytest

from tests.product.webhook.objects import Object, body, config_map, launcher_pod, mpi_job
from webhook.rules import handlers, review
from webhook.rules.handlers import NOTHING, Answer
from webhook.rules.review import Verdict

UNCHANGED = Answer(verdict=Verdict(), outcome="unchanged")


def mutated(sent: bytes) -> Answer:
    return handlers.answer(review.parse(sent), handlers.mutating(NOTHING))


def validated(sent: bytes) -> Answer:
    return handlers.answer(review.parse(sent), handlers.validating(NOTHING))


@pytest.mark.parametrize("obj", [launcher_pod(), config_map()])
def test_created_objects_of_the_operator_are_patched_dry_run_or_not(obj: Object) -> None:
    answer = mutated(body(obj))
    assert answer.outcome == "patched"
    assert mutated(body(obj, dryRun=True)) == answer


@pytest.mark.parametrize(
    "sent",
    [
        body(launcher_pod(), operation="UPDATE", oldObject=launcher_pod()),
        body(launcher_pod(), operation="DELETE"),
        body(launcher_pod(), subResource="ephemeralcontainers"),
        body(launcher_pod(), kind={"group": "", "version": "v2", "kind": "Pod"}),
        body(launcher_pod(), kind={"group": "apps", "version": "v1", "kind": "Deployment"}),
        body(mpi_job()),
    ],
)
def test_other_requests_are_left_unchanged(sent: bytes) -> None:
    assert mutated(sent) == UNCHANGED


def counted(**worker: object) -> Object:
    """A MPIJob whose workers the operator has counted."""
    job = mpi_job(conditions=["Created"])
    return {**job, "status": {**job["status"], "replicaStatuses": {"Launcher": {}, "Worker": worker}}}


def test_a_status_without_selector_gets_it_in_the_same_write() -> None:
    selector = "group-name=kubeflow.org,mpi-job-name=train,mpi-job-role=worker"
    for job in (counted(), counted(active=2), counted(active=2, selector="")):
        answer = mutated(body(job, old=mpi_job(), subResource="status"))
        at = "/status/replicaStatuses/Worker/selector"
        assert answer.verdict.patch == ({"op": "add", "path": at, "value": selector},)


@pytest.mark.parametrize(
    "sent",
    [
        body(counted(selector="a=b"), old=mpi_job(), subResource="status"),
        body(mpi_job(conditions=["Created"]), old=mpi_job(), subResource="status"),
        body(counted(), old=mpi_job()),
        body(counted(), subResource="status"),
        body(counted(), old=mpi_job(), subResource="scale"),
    ],
    ids=["has one", "no workers counted", "not the status", "created", "another subresource"],
)
def test_nothing_else_of_a_mpijob_is_changed(sent: bytes) -> None:
    assert mutated(sent) == UNCHANGED


def test_mpijobs_are_validated() -> None:
    bad = mpi_job(annotations={"mpijob-elastic/enabled": "yes"})
    assert validated(body(bad)).outcome == "rejected"
    assert validated(body(bad, old=mpi_job())).outcome == "rejected"
    assert validated(body(bad, old=bad)) == UNCHANGED
    assert validated(body(bad, operation="DELETE")) == UNCHANGED
    assert validated(body(bad, subResource="status", oldObject=mpi_job())) == UNCHANGED
    assert validated(body(mpi_job(annotations={"mpijob-elastic/enable": "true"}))).outcome == "warned"


@pytest.mark.parametrize(
    ("obj", "where"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata"),
        ({**launcher_pod(), "spec": []}, "$.spec"),
        ({**launcher_pod(), "spec": {"volumes": [{"name": 7}]}}, "$.spec.volumes[0].name"),
        ({**launcher_pod(), "metadata": {"labels": {"a": 1}}}, "$.metadata.labels[...]"),
        ({**config_map(), "data": {"hostfile": 1}}, "$.data[...]"),
    ],
)
def test_what_cannot_be_read_is_let_through_unchanged_and_said_so(obj: Object, where: str) -> None:
    answer = mutated(body(obj))
    assert answer.outcome == "unreadable"
    assert answer.verdict.allowed
    assert answer.verdict.patch == ()
    assert where in answer.verdict.warnings[0]


def test_an_object_nested_too_deeply_is_let_through() -> None:
    deep = b'{"name":"x","managedFields":' + b"[" * 400 + b"]" * 400 + b"}"
    sent = body({**mpi_job(), "metadata": {"uid": "DEEP"}}).replace(b'{"uid": "DEEP"}', deep)
    assert validated(sent) == UNCHANGED
    missing = validated(body(None, kind={"group": "kubeflow.org", "version": "v1", "kind": "MPIJob"}))
    assert missing.outcome == "unreadable"
    assert missing.verdict.allowed


def test_space_between_the_parts_hides_no_number_of_them() -> None:
    pod = launcher_pod()
    pod["spec"]["containers"] = [{}] * 20_000
    assert mutated(body(pod).replace(b",", b",  ")).outcome == "unreadable"

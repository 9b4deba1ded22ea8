"""Reviews in, answers out: each request has its handler, and nothing unreadable is ever blocked."""

import base64
import json
from typing import Any

import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import review as reviews
from mpijob_elastic.admission.review import Answer, Malformed, Refusal, Verdict
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.model import bounds
from tests.builders import but
from tests.product.webhook.answers import NOTHING
from tests.product.webhook.objects import Object, body, config_map, launcher_pod, mpi_job, review
from webhook.rules import handlers


def test_a_request_is_read() -> None:
    request = reviews.parse(body(launcher_pod(), dryRun=True))
    assert (request.kind.group, request.kind.version, request.kind.kind) == ("", "v1", "Pod")
    assert (request.operation, request.namespace, request.name) == (
        "CREATE",
        "default",
        "train-launcher",
    )
    assert (request.dry_run, json.loads(bytes(request.object))) == (True, launcher_pod())
    assert bytes(request.old_object) == b"null"


def without(field: str) -> bytes:
    """A review of a request that lacks this field."""
    request = {
        name: value for name, value in review(launcher_pod())["request"].items() if name != field
    }
    return replaced(request=request)


def replaced(**fields: object) -> bytes:
    return json.dumps({**review(launcher_pod()), **fields}).encode()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "truncated"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b'"\\ud800"', "body is not an AdmissionReview"),
        (b'{"request":{"uid":"1","object":' + b"[" * 100_000, "nested too deeply"),
        (b"{}", "required field `apiVersion`"),
        (without("uid"), "required field `uid` - at `$.request`"),
        (without("kind"), "required field `kind` - at `$.request`"),
        (without("operation"), "required field `operation`"),
        (
            replaced(apiVersion="admission.k8s.io/v1beta1"),
            "send admission.k8s.io/v1 AdmissionReview",
        ),
        (replaced(kind="Pod"), "admission.k8s.io/v1 Pod is not supported"),
        (replaced(request=None), "request.uid is missing"),
        (replaced(request="CREATE"), "Expected `object | null`, got `str` - at `$.request`"),
        (body(launcher_pod(), uid=""), "request.uid is missing"),
        (body(launcher_pod(), dryRun="no"), "`$.request.dryRun`"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(sent: bytes, said: str) -> None:
    with pytest.raises(Malformed) as refused:
        reviews.parse(sent)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


def answered(verdict: Verdict) -> dict[str, Any]:
    request = reviews.parse(body(mpi_job(), uid="42"))
    document: dict[str, Any] = json.loads(reviews.answer(request, verdict))
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = document["response"]
    return response


def test_a_refusal_carries_every_field_and_message() -> None:
    found = {"replicas": "9 is above 4", "slots": "0 is none"}
    refusals = tuple(Refusal(field=field, message=message) for field, message in found.items())
    causes = [
        {"reason": "FieldValueInvalid", "field": field, "message": message}
        for field, message in found.items()
    ]
    details = {"name": "train", "group": "kubeflow.org", "kind": "MPIJob", "causes": causes}
    status = {
        "code": 422,
        "reason": "Invalid",
        "message": "replicas: 9 is above 4; slots: 0 is none",
    }
    expected = {"uid": "42", "allowed": False, "status": {**status, "details": details}}
    assert answered(Verdict(refusals=refusals)) == expected


def test_a_patch_is_base64_json_and_no_patch_is_not_there() -> None:
    assert answered(Verdict()) == {"uid": "42", "allowed": True}
    patch = ({"op": "add", "path": "/data/discover_hosts.sh", "value": "#!/bin/sh\n"},)
    response = answered(Verdict(patch=patch))
    assert (response["patchType"], json.loads(base64.b64decode(response["patch"]))) == (
        "JSONPatch",
        [*patch],
    )


def test_long_warnings_are_cut_to_what_is_passed_on() -> None:
    short, long = "a" * 256, "b" * 257
    assert answered(Verdict(warnings=(short, long)))["warnings"] == [short, "b" * 255 + "…"]


UNCHANGED = Answer(verdict=Verdict(), outcome="unchanged")


def mutated(sent: bytes) -> Answer:
    return handlers.answer(reviews.parse(sent), handlers.mutating(NOTHING))


def validated(sent: bytes) -> Answer:
    return handlers.answer(reviews.parse(sent), handlers.validating(NOTHING))


@pytest.mark.parametrize("obj", [launcher_pod(), config_map()])
def test_created_objects_of_the_operator_are_patched_dry_run_or_not(obj: Object) -> None:
    assert [mutated(body(obj, dryRun=dry)).outcome for dry in (False, True)] == ["patched"] * 2


@pytest.mark.parametrize(
    "sent",
    [
        body(launcher_pod(), operation="UPDATE", oldObject=launcher_pod()),
        body(launcher_pod(), operation="DELETE"),
        body(launcher_pod(), subResource="ephemeralcontainers"),
        body(launcher_pod(), kind={"group": "", "version": "v2", "kind": "Pod"}),
        body(mpi_job()),
    ],
)
def test_other_requests_are_left_unchanged(sent: bytes) -> None:
    assert mutated(sent) == UNCHANGED


def counted(**worker: object) -> Object:
    """An MPIJob whose workers the operator has counted."""
    job = mpi_job(conditions=["Created"])
    return {
        **job,
        "status": {**job["status"], "replicaStatuses": {"Launcher": {}, "Worker": worker}},
    }


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
    assert (
        validated(body(mpi_job(annotations={"mpijob-elastic/enable": "true"}))).outcome == "warned"
    )


@pytest.mark.parametrize(
    ("obj", "where"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata"),
        ({**launcher_pod(), "spec": {"volumes": [{"name": 7}]}}, "$.spec.volumes[0].name"),
        ({**launcher_pod(), "metadata": {"labels": {"a": 1}}}, "$.metadata.labels[...]"),
        ({**config_map(), "data": {"hostfile": 1}}, "$.data[...]"),
    ],
)
def test_what_cannot_be_read_is_let_through_unchanged_and_said_so(obj: Object, where: str) -> None:
    answer = mutated(body(obj))
    [warning] = answer.verdict.warnings
    assert answer == Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")
    assert where in warning


def test_an_object_nested_too_deeply_is_let_through() -> None:
    deep = b'{"name":"x","managedFields":' + b"[" * 400 + b"]" * 400 + b"}"
    sent = body({**mpi_job(), "metadata": {"uid": "DEEP"}}).replace(b'{"uid": "DEEP"}', deep)
    assert validated(sent) == UNCHANGED
    missing = validated(
        body(None, kind={"group": "kubeflow.org", "version": "v1", "kind": "MPIJob"})
    )
    assert missing.outcome == "unreadable"
    assert missing.verdict.allowed


def test_space_between_the_parts_hides_no_number_of_them() -> None:
    pod = launcher_pod()
    pod["spec"]["containers"] = [{}] * 20_000
    assert mutated(body(pod).replace(b",", b",  ")).outcome == "unreadable"


def crowded(fields: int, *, queue: str = "team", **labels: str) -> Object:
    """A job with so many fields, in this queue of Kueue."""
    job = mpi_job()
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    worker["spec"]["containers"][0]["env"] = [
        {"name": f"A{index}", "value": "1"} for index in range(fields // 2)
    ]
    job["metadata"]["labels"] = {**({LABEL_QUEUE: queue} if queue else {}), **labels}
    return job


@pytest.mark.parametrize("fields", [6_000, 16_000])
def test_a_queued_job_that_cannot_be_read_is_refused(fields: int) -> None:
    """Its pods would start without their queue, and what was granted could never be taken back."""
    [refusal] = validated(body(crowded(fields))).verdict.refusals
    assert "fields or list items), so its pods would start without their queue" in refusal.message
    assert validated(body(crowded(fields), old=crowded(10))).outcome == "rejected"
    assert validated(body(crowded(fields), old=crowded(fields, queue=""))).outcome == "rejected"


def test_a_queued_job_with_more_text_than_is_kept_is_refused() -> None:
    job = crowded(10)
    labels = {f"label-{index}": "x" * 60 for index in range(1_200)}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": labels}
    assert validated(body(job)).outcome == "rejected"


def sized_to(size: int) -> Object:
    """A queued job of which so many bytes are kept, our notices left out."""
    job = crowded(10)
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"labels": {"own": ""}}
    facts = but(capabilities.read(json.dumps(job).encode()), notices="")
    template["metadata"]["labels"]["own"] = "x" * (size - bounds.size(facts))
    return job


def test_an_edit_of_a_queued_job_leaves_room_for_what_the_controller_writes() -> None:
    """Else its phase made the job unreadable, and the notice that comes with it was refused: so it kept its quota."""
    most = bounds.LARGEST_JOB - bounds.LATER
    small, fits, over, largest = map(sized_to, (most - 9, most, most + 1, bounds.LARGEST_JOB))
    assert validated(body(fits, old=small)).verdict.allowed
    for larger in (over, largest):
        assert not validated(body(larger, old=fits)).verdict.allowed
        ours = {"userInfo": {"username": names.CONTROLLER_USER}}
        assert validated(body(larger, old=fits, **ours)).verdict.allowed
        assert validated(body(larger, old=larger)).verdict.allowed, "what was so before may stay"
    assert not validated(body(largest, old=over)).verdict.allowed


def test_other_jobs_that_cannot_be_read_pass() -> None:
    deleting = crowded(6_000)
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for sent in (
        body(crowded(6_000, queue="")),
        body(deleting),
        body(crowded(7_000), old=crowded(6_000)),
    ):
        assert validated(sent).outcome == "unreadable"

"""AdmissionReviews in and out."""

import base64
import json
from typing import Any

import pytest

from tests.product.webhook.objects import body, launcher_pod, mpi_job, review
from webhook.rules import review as reviews
from webhook.rules.review import Malformed, Refusal, Verdict


def test_a_request_is_read() -> None:
    request = reviews.parse(body(launcher_pod(), dryRun=True))

    assert (request.kind.group, request.kind.version, request.kind.kind) == ("", "v1", "Pod")
    assert (request.operation, request.namespace, request.name) == ("CREATE", "default", "train-launcher")
    assert request.dry_run
    assert json.loads(bytes(request.object)) == launcher_pod()
    assert bytes(request.old_object) == b"null"


def without(path: str) -> bytes:
    document: dict[str, Any] = review(launcher_pod())
    *parents, last = path.split(".")
    part = document
    for parent in parents:
        part = part[parent]
    del part[last]
    return json.dumps(document).encode()


def replaced(**fields: object) -> bytes:
    return json.dumps({**review(launcher_pod()), **fields}).encode()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"hello", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b'"\\ud800"', "body is not an AdmissionReview"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"request":{"uid":"1","object":' + b"[" * 100_000, "nested too deeply"),
        (without("apiVersion"), "required field `apiVersion`"),
        (without("request"), "request.uid is missing"),
        (without("request.uid"), "required field `uid` - at `$.request`"),
        (without("request.kind"), "required field `kind` - at `$.request`"),
        (without("request.operation"), "required field `operation`"),
        (replaced(apiVersion="admission.k8s.io/v1beta1"), "send admission.k8s.io/v1 AdmissionReview"),
        (replaced(kind="Pod"), "admission.k8s.io/v1 Pod is not supported"),
        (replaced(request={}), "required field `uid`"),
        (replaced(request=None), "request.uid is missing"),
        (replaced(request="CREATE"), "Expected `object | null`, got `str` - at `$.request`"),
        (body(launcher_pod(), uid=""), "request.uid is missing"),
        (body(launcher_pod(), uid=7), "Expected `str`, got `int` - at `$.request.uid`"),
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


def test_an_answer_that_changes_nothing_says_nothing_else() -> None:
    assert answered(Verdict()) == {"uid": "42", "allowed": True}


def test_a_refusal_carries_every_field_and_message() -> None:
    refusals = (Refusal(field="replicas", message="9 is above 4"), Refusal(field="slots", message="0 is none"))
    assert answered(Verdict(refusals=refusals)) == {
        "uid": "42",
        "allowed": False,
        "status": {
            "code": 422,
            "reason": "Invalid",
            "message": "replicas: 9 is above 4; slots: 0 is none",
            "details": {
                "name": "train",
                "group": "kubeflow.org",
                "kind": "MPIJob",
                "causes": [
                    {"reason": "FieldValueInvalid", "field": "replicas", "message": "9 is above 4"},
                    {"reason": "FieldValueInvalid", "field": "slots", "message": "0 is none"},
                ],
            },
        },
    }


def test_a_patch_is_base64_json() -> None:
    patch = ({"op": "add", "path": "/data/discover_hosts.sh", "value": "#!/bin/sh\n"},)
    response = answered(Verdict(patch=patch))

    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == list(patch)


def test_long_warnings_are_cut_to_what_is_passed_on() -> None:
    short, long = "a" * 256, "b" * 257
    assert answered(Verdict(warnings=(short, long)))["warnings"] == [short, "b" * 255 + "…"]

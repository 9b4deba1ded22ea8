"""Whatever is sent gets an answer; whatever is patched is the operator's, in one place, once."""

import base64
import copy
import json
import re
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.admission import review as reviews
from mpijob_elastic.admission.review import Malformed
from tests.json_places import places
from tests.product.webhook.answers import NOTHING
from tests.product.webhook.objects import (
    ELASTIC,
    Object,
    body,
    config_map,
    launcher_pod,
    mpi_job,
    review,
    worker_pod,
)
from webhook.rules import handlers

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
MUTATING, VALIDATING = handlers.mutating(NOTHING), handlers.validating(NOTHING)
TABLES = st.sampled_from([MUTATING, VALIDATING])
ALLOWED = re.compile(
    r"/spec/volumes/\d+(/configMap/items/\d+)?|/spec/containers/\d+/(volumeMounts|env)(/\d+)?"
    r"|/data/(discover_hosts\.sh|elastic\.sh|hostfile\.hydra)"
)
SELECTOR = "/status/replicaStatuses/Worker/selector"
CREATED = [
    launcher_pod(),
    worker_pod(),
    config_map(),
    mpi_job(command=ELASTIC, annotations={"mpijob-elastic/x": "1"}),
]
JOB = mpi_job(replicas=3, conditions=["Created"])
COUNTED = {
    **JOB,
    "status": {**JOB["status"], "replicaStatuses": {"Launcher": {}, "Worker": {"active": 3}}},
}
REVIEWS = [
    *map(review, CREATED),
    review(mpi_job(slots=2, conditions=["Created"]), old=JOB),
    review(COUNTED, old=JOB, subResource="status"),
]


@st.composite
def spoiled(draw: st.DrawFn) -> Object:
    """A review as the API server sends it, with one to three places replaced or gone."""
    document: Object = copy.deepcopy(draw(st.sampled_from(REVIEWS)))
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(list(places(document))))
        part: Any = document
        for step in parents:
            part = part[step]
        if draw(st.booleans()):
            part[last] = draw(JSON)
        else:
            del part[last]
    return document


def response(sent: bytes, table: Any) -> Object:
    """The answer over the wire, or {} where the body was refused as malformed."""
    try:
        request = reviews.parse(sent)
    except Malformed:
        return {}
    verdict = handlers.answer(request, table).verdict
    answered: Object = json.loads(reviews.answer(request, verdict))["response"]
    assert answered["uid"] == request.uid
    assert answered["allowed"] or answered["status"]["message"]
    return answered


def check_patch(document: Object, answer: Object) -> None:
    """Check that only objects of the operator are patched, in our place, and that a second review leaves them alone."""
    obj = document["request"]["object"]
    operations = json.loads(base64.b64decode(answer["patch"]))
    if document["request"].get("subResource"):
        name = obj["metadata"]["name"]
        value = f"group-name=kubeflow.org,mpi-job-name={name},mpi-job-role=worker"
        assert operations == [{"op": "add", "path": SELECTOR, "value": value}]
    else:
        assert all(
            operation["op"] == "add" and ALLOWED.fullmatch(operation["path"])
            for operation in operations
        )
        assert any(
            owner["kind"] == "MPIJob" and owner["controller"]
            for owner in obj["metadata"]["ownerReferences"]
        )
    patched = jsonpatch.apply_patch(obj, operations)
    changed = jsonpatch.make_patch(obj, patched).patch
    assert sorted(changed, key=str) == sorted(operations, key=str)
    document["request"]["object"] = patched
    assert "patch" not in response(json.dumps(document).encode(), MUTATING)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()), TABLES)
def test_any_bytes_get_an_answer(sent: bytes, table: Any) -> None:
    assert response(sent, table) == {}


@given(
    JSON,
    JSON,
    st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
    TABLES,
    st.sampled_from(CREATED),
)
def test_any_object_is_let_through_unpatched(
    obj: Any, old: Any, operation: str, table: Any, kind: Object
) -> None:
    sent = json.loads(body(kind, operation=operation))
    sent["request"] |= {"object": obj, "oldObject": old}
    answer = response(json.dumps(sent).encode(), table)
    assert "patch" not in answer
    assert (
        answer == {} or answer["allowed"] or "mpi-operator v0.2.3 c" in answer["status"]["message"]
    )


@given(spoiled(), TABLES)
def test_a_spoiled_review_gets_an_answer_and_no_foreign_patch(document: Object, table: Any) -> None:
    answer = response(json.dumps(document).encode(), table)
    if "patch" in answer:
        check_patch(document, answer)


@given(st.integers(1, 2000), st.sampled_from(["items", "annotations", "metadata"]))
def test_any_depth_gets_an_answer(depth: int, where: str) -> None:
    deep = b"[" * depth + b"]" * depth
    pod = launcher_pod()
    if where == "items":
        pod["spec"]["volumes"][1]["configMap"]["items"].append({"key": "x", "path": "DEEP"})
    else:
        pod["metadata"] |= {where: "DEEP"}
    response(body(pod).replace(b'"DEEP"', deep), MUTATING)
    response(body({**mpi_job(), "spec": "DEEP"}).replace(b'"DEEP"', deep), VALIDATING)


@given(
    st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=3), st.integers(0, 10**9)
)
def test_any_annotations_and_sizes_are_judged(
    key: str, value: str, others: dict[str, str], replicas: int
) -> None:
    annotations = {f"mpijob-elastic/{key}": value, **others}
    job = mpi_job(replicas=replicas, annotations=annotations)
    answer = response(body(job), VALIDATING)
    assert all(len(warning) <= 256 for warning in answer.get("warnings", ()))
    assert "warnings" not in answer or f"mpijob-elastic/{key}"[:64] in "".join(answer["warnings"])

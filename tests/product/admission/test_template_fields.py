"""The fields that the operator drops come back on the pods that it makes, and nothing else changes."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import mutate, review
from mpijob_elastic.admission.json_patch import ForeignField, restoring
from mpijob_elastic.capabilities.gangs import facts as gang
from mpijob_elastic.model import template_fields as facts
from mpijob_elastic.model.template_fields import TABLE
from tests.product.admission.template_pods import (
    holds,
    job,
    launcher_of,
    restored,
    worker_of,
)
from tests.product.webhook.answers import knowing, verdict
from tests.product.webhook.objects import Object, body
from webhook.rules import handlers

PROBE = {"exec": {"command": ["/ready"]}, "failureThreshold": 60}
SIDECAR = {"name": "log", "image": "log:1", "restartPolicy": "Always"}
CONTAINER = {"name": "worker", "image": "horovod:1"}


def spec_of(pod: Object) -> Object:
    found: Object = pod["spec"]
    return found


@pytest.mark.parametrize(
    ("template", "at"),
    [
        ({"hostUsers": False}, ["hostUsers"]),
        ({"topologySpreadConstraints": [{"topologyKey": "zone"}]}, ["topologySpreadConstraints"]),
        ({"schedulingGates": [{"name": "a.com/b"}]}, ["schedulingGates"]),
        ({"resources": {"limits": {"cpu": 1}}}, ["resources"]),
        ({"containers": [{**CONTAINER, "startupProbe": PROBE}]}, ["containers", 0, "startupProbe"]),
        ({"initContainers": [SIDECAR]}, ["initContainers", 0, "restartPolicy"]),
        (
            {
                "volumes": [
                    {"name": "a", "emptyDir": {}},
                    {"name": "b", "image": {"reference": "x"}},
                ]
            },
            ["volumes", 1],
        ),
        (
            {"containers": [{**CONTAINER, "livenessProbe": {"grpc": {"port": 1}}}]},
            ["containers", 0, "livenessProbe", "grpc"],
        ),
        ({"securityContext": {"fsGroupChangePolicy": "Always"}}, ["securityContext"]),
    ],
)
def test_a_field_comes_back_where_its_template_has_it(template: Object, at: list[Any]) -> None:
    made = job(template)
    found: Any = spec_of(restored(worker_of(made), made))
    wanted: Any = template
    for step in at:
        found, wanted = found[step], wanted[step]
    assert found == wanted


def test_a_launcher_gets_back_what_its_own_template_has() -> None:
    made = job({"hostUsers": False}, {"setHostnameAsFQDN": True})
    launcher = spec_of(restored(launcher_of(made), made))
    worker = spec_of(restored(worker_of(made), made))
    assert (launcher.get("hostUsers"), launcher["setHostnameAsFQDN"]) == (None, True)
    assert (worker["hostUsers"], worker.get("setHostnameAsFQDN")) == (False, None)


def test_items_are_found_by_name_where_others_have_put_their_own_before() -> None:
    made = job({"containers": [{**CONTAINER, "startupProbe": PROBE}], "initContainers": [SIDECAR]})
    pod = worker_of(made)
    spec_of(pod)["containers"].insert(0, {"name": "proxy"})
    spec_of(pod)["initContainers"].insert(0, {"name": "proxy-init"})
    found = spec_of(restored(pod, made))
    assert [one.get("startupProbe") for one in found["containers"]] == [None, PROBE]
    assert [one.get("restartPolicy") for one in found["initContainers"]] == [None, "Always"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda spec: spec["containers"].clear(), id="no such container"),
        pytest.param(
            lambda spec: spec["containers"].append({"name": "worker"}), id="two of that name"
        ),
        pytest.param(
            lambda spec: spec["containers"][0].update(startupProbe={}), id="it has one already"
        ),
        pytest.param(lambda spec: spec.update(containers=None), id="null"),
    ],
)
def test_a_pod_that_another_webhook_has_changed_there_stays_as_it_is(change: Any) -> None:
    made = job({"containers": [{**CONTAINER, "startupProbe": PROBE}]})
    pod = worker_of(made)
    change(spec_of(pod))
    assert spec_of(restored(pod, made)) == spec_of(pod)


def test_terms_without_a_name_come_back_only_where_there_are_as_many() -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    made = job({"affinity": {"podAntiAffinity": rules}})
    pod = worker_of(made)
    assert spec_of(restored(pod, made))["affinity"]["podAntiAffinity"] == rules
    found = spec_of(pod)["affinity"]["podAntiAffinity"]
    found["requiredDuringSchedulingIgnoredDuringExecution"].insert(0, {"topologyKey": "rack"})
    assert spec_of(restored(pod, made)) == spec_of(pod)


def test_a_volume_that_has_a_source_keeps_it() -> None:
    made = job({"volumes": [{"name": "a", "image": {"reference": "x"}}]})
    pod = worker_of(made)
    spec_of(pod)["volumes"][0]["emptyDir"] = {"medium": "Memory"}
    assert spec_of(restored(pod, made)) == spec_of(pod)


@pytest.mark.parametrize("value", ["false", "no", None])
def test_nothing_comes_back_for_a_job_that_does_not_want_it(value: str | None) -> None:
    made = job({"hostUsers": False}, annotations={names.PUT_BACK: value} if value else {})
    pod = worker_of(made)
    assert restored(pod, made) == pod


def test_a_pod_gets_the_mark_by_which_the_controller_knows_it() -> None:
    made = job({"hostUsers": False})
    assert restored(worker_of(made), made)["metadata"]["annotations"][names.PUT_BACK] == "true"
    other = worker_of(made)
    other["metadata"]["name"] = "other-worker-0"
    assert restored(other, made) == other


VALUES = {
    "string": st.sampled_from(["", "a", "b"]),
    "bool": st.booleans(),
    "int32": st.integers(0, 3),
    "int64": st.integers(0, 3),
    "quantity": st.sampled_from(["1", "1Gi", 2]),
    "int-or-string": st.sampled_from(["http", 80]),
    "time": st.just("2026-01-01T00:00:00Z"),
}


def values(kind: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a type of the table."""
    if kind.startswith("[]"):
        return st.lists(values(kind[2:], depth), max_size=2)
    if kind.startswith("{}"):
        return st.dictionaries(st.sampled_from("ab"), values(kind[2:], depth), max_size=2)
    if kind in VALUES:
        return VALUES[kind]
    if depth > 2:
        return st.just({})
    fields = {key: values(inner, depth + 1) for key, inner in TABLE.types[kind].items()}
    return st.fixed_dictionaries({}, optional=fields)


def put(spec: Object, pointer: str, value: object) -> None:
    """Write a value at a pointer of the table: the first item of each list."""
    steps, found = pointer.split("/")[2:], spec
    at = "/spec"
    for step, following in pairwise(steps):
        at += f"/{step}"
        if step == "*":
            continue
        if following != "*":
            found = found.setdefault(step, {})
            continue
        key = TABLE.keys.get(at)
        items = found.setdefault(step, [{key: "worker"} if key else {}])
        if step == "volumeMounts":
            items[0]["name"] = "data"
        found = items[0]
    found[steps[-1]] = value


@st.composite
def templates(draw: st.DrawFn) -> Object:
    """Specs with some of the fields that the operator drops; a volume has one source."""
    spec: Object = {"containers": [dict(CONTAINER)]}
    pointers = draw(st.sets(st.sampled_from(sorted(TABLE.fields)), max_size=6))
    sources = {pointer.split("/")[4] for pointer in pointers if pointer.startswith("/spec/volumes")}
    for pointer in sorted(pointers):
        in_volume = pointer.startswith("/spec/volumes")
        if not in_volume or pointer.split("/")[4] == min(sources):
            put(spec, pointer, draw(values(TABLE.fields[pointer].type)))
    return spec


@given(templates())
def test_whatever_the_operator_drops_is_there_again(template: Object) -> None:
    # Claims of containers come back with those of their pod.
    made = job({"resourceClaims": [{"name": "gpu"}], **template})
    pod = worker_of(made)
    found = spec_of(restored(pod, made))
    wanted = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert holds(found, wanted)


@given(st.sampled_from(sorted(TABLE.fields)), st.data())
def test_a_value_of_its_type_has_no_fault(pointer: str, data: st.DataObject) -> None:
    row = TABLE.fields[pointer]
    value = data.draw(values(row.type))
    one = facts.Lost(steps=("x",), row=row, value=json.dumps(value).encode())
    assert one.faults() == ("", [])


def admitted(pod: Object, made: Object) -> Object:
    """The pod after all rules of the webhook."""
    request = review.parse(body(pod))
    patch = handlers.answer(request, handlers.mutating(knowing(made))).verdict.patch
    stored: Object = jsonpatch.apply_patch(pod, json.loads(msgspec.json.encode(patch)))
    return stored


@pytest.mark.parametrize("gates", [[None], [{"name": None}]])
def test_a_field_with_a_null_in_a_list_stays_dropped_alone(gates: list[Any]) -> None:
    made = job({"schedulingGates": gates, "hostUsers": False})
    found = admitted(worker_of(made), made)
    assert found["metadata"]["annotations"] == {names.PUT_BACK: "true"}
    assert spec_of(found)["hostUsers"] is False
    assert "schedulingGates" not in spec_of(found)
    assert "schedulingGates stays dropped" in told(made)[0]


@pytest.mark.parametrize("scheduler", sorted(gang.POD_GROUPS))
@pytest.mark.parametrize("pod", [worker_of, launcher_of])
def test_a_pod_has_the_mark_beside_the_annotations_of_other_rules(
    scheduler: str, pod: Callable[[Object], Object]
) -> None:
    made = job(
        {"hostUsers": False},
        {"hostUsers": False},
        annotations={names.PUT_BACK: "true", gang.GANG: scheduler},
    )
    found = admitted(pod(made), made)
    alone = job(annotations={gang.GANG: scheduler})
    others = admitted(pod(alone), alone)["metadata"].get("annotations", {})
    assert found["metadata"]["annotations"] == {names.PUT_BACK: "true", **others}


CLAIMING = {"containers": [{**CONTAINER, "resources": {"claims": [{"name": "gpu"}]}}]}


@pytest.mark.parametrize(
    ("claims", "come_back"),
    [
        ([{"name": "gpu", "resourceClaimTemplateName": "gpu"}], True),
        ([{"name": "gpu", "resourceClaimTemplateName": 5}], False),
        ([{"name": "gpu", "resourceClaimTemplateName": "x" * 20_000}], False),
        (None, False),
    ],
)
def test_claims_of_containers_come_back_with_those_of_their_pod_alone(
    claims: list[Object] | None, come_back: bool
) -> None:
    made = job({**CLAIMING, "resourceClaims": claims})
    found = spec_of(restored(worker_of(made), made))
    assert ("claims" in found["containers"][0].get("resources", {})) is come_back
    assert bool(found.get("resourceClaims")) is come_back
    staying = [text for text in told(made) if "claims stays dropped: without" in text]
    assert bool(staying) is not come_back


def test_a_volume_with_two_sources_gets_one() -> None:
    both = {"name": "a", "image": {"reference": "x"}, "ephemeral": {"volumeClaimTemplate": {}}}
    made = job({"volumes": [both]})
    [found, *_] = spec_of(restored(worker_of(made), made))["volumes"]
    assert found.keys() - {"name"} in ({"image"}, {"ephemeral"})


def test_a_worker_of_v0_3_0_keeps_what_its_operator_has_made() -> None:
    made = job({"hostUsers": False})
    pod = worker_of(made)
    pod["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = "0"
    assert restored(pod, made) == pod


@pytest.mark.parametrize(
    ("annotations", "come_back"),
    [
        ({}, True),
        ({names.PUT_BACK: "false"}, False),
        ({names.ENABLED: "false"}, False),
        ({names.PUT_BACK: "true", names.ENABLED: "false"}, True),
    ],
)
def test_a_converted_job_is_told_which_fields_come_back(
    annotations: dict[str, str], come_back: bool
) -> None:
    made = job({"hostUsers": False}, annotations=annotations)
    found = facts.restorable(json.dumps(made).encode())
    assert bool(found) is come_back


def test_no_patch_is_outside_the_table() -> None:
    for pointer in ("/spec/hostNetwork", "/spec/overhead", "/spec/containers/00/startupProbe"):
        with pytest.raises(ForeignField):
            restoring(at=pointer, value=True, op="add", allowed=facts.MAY_ADD)
    with pytest.raises(ForeignField):
        restoring(at="/spec/containers/0", value={}, op="replace", allowed=facts.MAY_REPLACE)
    assert restoring(at="/spec/volumes/10", value={}, op="replace", allowed=facts.MAY_REPLACE)


def told(made: Object, old: Object | None = None) -> list[str]:
    """The warnings on these fields."""
    said = verdict(made, old, context=knowing(made)).warnings
    return [text for text in said if re.search("template.spec|drops|annotate the job", text)]


def resized(how: str) -> Object:
    return {**CONTAINER, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": how}]}


@pytest.mark.parametrize(("restarts", "come_back"), [("OnFailure", True), ("Never", False)])
def test_a_container_is_resized_by_a_restart_only_in_a_pod_that_restarts(
    restarts: str, come_back: bool
) -> None:
    made = job({"containers": [resized("RestartContainer")]})
    made["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = restarts
    [container] = spec_of(restored(worker_of(made), made))["containers"]
    assert ("resizePolicy" in container) is come_back


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"hostUsers": False}, ""),
        ({"hostUsers": "no"}, 'hostUsers stays dropped: "no" is not a boolean'),
        (
            {"containers": [{**CONTAINER, "startupProbe": {"exec": {"command": "a"}}}]},
            "startupProbe stays dropped: exec.command: ",
        ),
        (
            {"containers": [{**CONTAINER, "startupProbe": {**PROBE, "failureTreshold": 1}}]},
            "startupProbe.failureTreshold: Kubernetes v1.37.2 does not know this field",
        ),
        ({"containers": [resized("NotRequired")]}, ""),
        ({"containers": [resized("RestartContainer")]}, "resizePolicy stays dropped: only Not"),
        ({"overhead": {"cpu": "1"}}, "overhead: mpi-operator v0.2.3 drops this field"),
        ({"schedulingGates": [{"name": "a.com/b"}]}, "removes its gates (a.com/b)"),
        (
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "required spread over zone",
        ),
        (
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            "",
        ),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, "share a ResourceClaim"),
        (
            {"hostUsers": False, "os": {"name": "x" * 20_000}},
            "os stays dropped: the templates have",
        ),
    ],
)
def test_what_stays_dropped_or_may_hold_pods_is_told(template: Object, said: str) -> None:
    found = told(job(template))
    assert bool(found) == bool(said)
    assert any(said in text for text in found) or not said


def test_a_job_that_says_no_is_told_what_is_dropped() -> None:
    [text] = told(job({"hostUsers": False}, annotations={names.PUT_BACK: "false"}))
    assert "hostUsers: mpi-operator v0.2.3 drops this field" in text


def test_an_older_job_is_told_once_how_to_get_back_a_new_field() -> None:
    old = job(annotations={}, conditions=["Created"])
    new = job({"hostUsers": False}, annotations={}, conditions=["Created"])
    assert [text for text in told(new, old) if "annotate the job" in text]
    assert not [text for text in told(new, new) if "annotate the job" in text]


def answer(made: Object) -> Any:
    """The patch of a new MPIJob."""
    request = review.parse(body(made))
    return handlers.answer(request, handlers.mutating(knowing(made))).verdict.patch


@pytest.mark.parametrize(
    ("made", "marked"),
    [
        (job({"hostUsers": False}, annotations={}), True),
        (job(launcher={"hostUsers": False}, annotations={"a": "b"}), True),
        (job({"hostUsers": "no"}, annotations={}), False),
        (job(annotations={}), False),
        (job({"hostUsers": False}, annotations={names.PUT_BACK: "false"}), False),
        (job({"hostUsers": False}, annotations={names.ENABLED: "false"}), False),
    ],
)
def test_a_new_job_with_such_fields_is_marked(made: Object, marked: bool) -> None:
    patch = answer(made)
    assert bool(patch) is marked
    assert not marked or "true" in json.dumps(patch[0]["value"])


def test_the_fields_that_later_rules_read_are_known() -> None:
    read = {
        f"{struct}.{field.encode_name}"
        for struct, kind in (("PodSpec", mutate.AdmittedSpec), ("Container", mutate.PodContainer))
        for field in msgspec.structs.fields(kind)
    }
    dropped = {row.known_as for row in TABLE.fields.values()}
    assert read & dropped == facts.READ.keys()


def test_later_rules_read_the_pod_with_its_fields() -> None:
    """A worker with a sidecar is not alone: its grace period stays as the API server has set it."""
    alone, beside = job(), job({"initContainers": [SIDECAR]})
    for made, is_alone in ((alone, True), (beside, False)):
        pod = worker_of(made)
        pod["spec"]["terminationGracePeriodSeconds"] = 30
        request = review.parse(body(pod))
        patch = handlers.answer(request, handlers.mutating(knowing(made))).verdict.patch
        [grace] = [one for one in patch if one["path"].endswith("GracePeriodSeconds")]
        assert (grace["value"] > 30) is is_alone


def test_a_gate_of_the_template_stands_beside_our_own() -> None:
    made = job(
        {"schedulingGates": [{"name": "a.com/b"}]},
        annotations={names.PUT_BACK: "true", names.SUSPEND: "true"},
    )
    request = review.parse(body(worker_of(made)))
    patch = handlers.answer(request, handlers.mutating(knowing(made))).verdict.patch
    gates = [one for one in patch if "schedulingGates" in one["path"]]
    assert [one["path"] for one in gates] == ["/spec/schedulingGates", "/spec/schedulingGates/-"]


@pytest.mark.parametrize(
    ("template", "counts"),
    [
        ({}, {"limits.cpu": 2, "requests.cpu": 2}),
        (
            {"initContainers": [{**SIDECAR, "resources": {"requests": {"cpu": "1"}}}]},
            {"limits.cpu": 2, "requests.cpu": 3},
        ),
        (
            {"resources": {"requests": {"cpu": "5"}, "limits": {"cpu": "6"}}},
            {"limits.cpu": 6, "requests.cpu": 5},
        ),
        (
            {"initContainers": [{"name": "init", "resources": {"requests": {"cpu": "9"}}}]},
            {"limits.cpu": 2, "requests.cpu": 2},
        ),
    ],
)
def test_a_quota_counts_sidecars_and_what_the_pod_asks_for(
    template: Object, counts: Object
) -> None:
    limits = {"resources": {"limits": {"cpu": "2"}}}
    made = job({"containers": [{**CONTAINER, **limits}], "hostUsers": False, **template})
    found = capabilities.read(json.dumps(made).encode()).worker_counts
    assert {key: found[key] // 10**9 for key in counts} == counts

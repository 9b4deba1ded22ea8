"""The fields of an MPIJob that we read, and the operator's defaults for those that are missing."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities
from mpijob_elastic.model import mpijob
from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook.objects import mpi_job


def read(**parts: Any) -> MPIJob:
    return mpijob.decode(json.dumps({"metadata": {}, **parts}).encode())


@pytest.mark.parametrize(
    ("specs", "replicas"),
    [
        ({"Launcher": {}}, 0),
        ({"Worker": None}, 0),
        ({"Worker": {}}, None),
        ({"Worker": {"replicas": None}}, None),
        ({"Worker": {"replicas": 0}}, 0),
        ({"Worker": {"replicas": 3, "colour": {}}}, 3),
    ],
)
def test_how_many_workers_a_job_asks_for(specs: dict[str, Any], replicas: int | None) -> None:
    assert read(spec={"mpiReplicaSpecs": specs}).replicas == replicas


def test_slots_and_clean_pod_policy_have_the_operators_defaults() -> None:
    bare, said = read(), read(spec={"slotsPerWorker": 4, "cleanPodPolicy": "Running"})
    assert (bare.slots, capabilities.of(bare).clean_pod_policy) == (1, "None")
    assert (said.slots, capabilities.of(said).clean_pod_policy) == (4, "Running")


def test_the_launchers_texts_are_commands_arguments_and_environment_values() -> None:
    main = {
        "command": ["sh", "-c"],
        "args": ["train"],
        "env": [{"name": "A", "value": "b"}, {"name": "C"}],
    }
    template = {"spec": {"containers": [main, {"name": "side-car"}]}}
    found = read(spec={"mpiReplicaSpecs": {"Launcher": {"template": template}}}).containers(
        "launcher"
    )
    assert [text for container in found for text in container.texts()] == ["sh", "-c", "train", "b"]
    assert read().containers("launcher") == []


def test_only_a_condition_that_is_true_counts() -> None:
    failed, running = (
        {"type": "Failed", "status": "False"},
        {"type": "Running", "status": "True", "reason": "R"},
    )
    job = read(status={"conditions": [failed, running]})
    assert (job.condition("Failed"), job.condition("Running").reason) == (None, "R")


def test_a_job_of_thousands_of_containers_is_refused_and_commas_in_a_short_one_are_not() -> None:
    launcher = '{"metadata":{},"spec":{"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{"containers":[%s]}}}}}}'
    assert (
        len(mpijob.decode((launcher % ",".join(["{}"] * 1000)).encode()).containers("launcher"))
        == 1000
    )
    for container in ("{}", "null"):
        with pytest.raises(msgspec.DecodeError, match="more than 5,000 fields"):
            mpijob.decode((launcher % ",".join([container] * 6000)).encode())
    script = json.dumps("x = f(a, b, c, (1,2))\n" * 3000)
    assert mpijob.decode((launcher % f'{{"args":[{script}]}}').encode()).containers("launcher")


def managed(manager: str, time: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What is noted of a manager."""
    return {"manager": manager, "time": time, "fieldsV1": fields}


def of_workers(field: str) -> dict[str, Any]:
    """The fields of a manager who has set this one of the workers."""
    return {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {field: {}}}}}


@pytest.mark.parametrize(
    ("manager", "fields", "named"),
    [
        ("argocd-controller", of_workers("f:replicas"), True),
        ("kubectl-edit", of_workers("f:replicas"), False),
        ("argocd-controller", of_workers("f:template"), False),
        ("argocd-controller", {}, False),
    ],
)
def test_a_gitops_tool_that_was_the_last_to_set_the_size_is_named(
    manager: str, fields: dict[str, Any], *, named: bool
) -> None:
    entries = [{"manager": "kubectl-create"}, {"manager": manager, "fieldsV1": fields}]
    assert read(metadata={"managedFields": entries}).size_manager == (manager if named else "")
    assert read(metadata={"managedFields": None}).size_manager == ""


@pytest.mark.parametrize(
    ("size", "known"), [(2**31 - 1, 2**31 - 1), (2**31, None), (-(10**30), None)]
)
def test_a_size_that_the_operator_cannot_read_is_not_known(size: int, known: int | None) -> None:
    """It would make our own memory of the job unreadable."""
    assert read(spec={"mpiReplicaSpecs": {"Worker": {"replicas": size}}}).replicas == known


def test_the_size_is_as_old_as_the_last_write_of_a_manager_that_has_it() -> None:
    size = of_workers("f:replicas")
    entries = [
        managed("kubectl-create", "2026-01-01T00:00:00Z", size),
        {**managed("kubectl", "2026-01-01T00:00:09Z", size), "subresource": "scale"},
        managed("kubectl-annotate", "2026-01-01T01:00:00Z", {"f:metadata": {}}),
    ]
    assert read(metadata={"managedFields": entries}).resized_at == seconds("2026-01-01T00:00:09Z")
    assert read().resized_at == 0.0


@pytest.mark.parametrize(
    ("others", "last"),
    [
        ([], "kubectl-annotate"),
        (
            [managed("mpijob-elastic", "2026-01-01T00:00:09Z", {"f:metadata": {}})],
            "kubectl-annotate",
        ),
        (
            [managed("mpi-operator", "2026-01-01T00:00:09Z", {"f:status": {"f:startTime": {}}})],
            "kubectl-annotate",
        ),
        (
            [managed("argocd-controller", "2026-01-01T00:00:09Z", {"f:spec": {}})],
            "argocd-controller",
        ),
    ],
    ids=["alone", "before the controller", "before the operator", "before somebody else"],
)
def test_who_edited_it_last_is_neither_the_controller_nor_who_sets_the_status(
    others: list[Any], last: str
) -> None:
    annotated = managed(
        "kubectl-annotate", "2026-01-01T00:00:05Z", {"f:metadata": {"f:annotations": {}}}
    )
    created = managed("kubectl-create", "2026-01-01T00:00:01Z", {"f:spec": {}})
    edited = read(metadata={"managedFields": [created, annotated, *others]}).edited
    assert edited is not None
    assert edited.manager == last
    assert read().edited is None


def test_who_set_an_annotation_is_known_while_it_is_there() -> None:
    parked: dict[str, Any] = {"f:metadata": {"f:annotations": {".": {}, "f:parked": {}}}}
    entries = [
        managed("kubectl-create", "2026-01-01T00:00:01Z", {"f:spec": {}}),
        managed("kubectl-annotate", "2026-01-01T00:00:05Z", parked),
        managed("argocd-controller", "2026-01-01T00:00:07Z", {"f:metadata": {"f:labels": {}}}),
    ]
    job = read(metadata={"managedFields": entries})
    found = job.annotated("parked")
    assert found is not None
    assert (found.manager, found.at) == ("kubectl-annotate", seconds("2026-01-01T00:00:05Z"))
    assert job.annotated("sizes") is None
    assert read(metadata={"managedFields": None}).annotated("parked") is None


def profiles(spec: Any) -> Any:
    job = mpi_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] = spec
    return mpijob.decode(json.dumps(job).encode()).pod("worker").seccomp_profiles


def with_profile(profile: Any, **more: Any) -> Any:
    return {**more, "securityContext": {"seccompProfile": profile}}


def test_of_the_pod_and_of_containers_by_name() -> None:
    default, unconfined, own = (
        {"type": "RuntimeDefault"},
        {"type": "Unconfined"},
        {"type": "Localhost"},
    )
    own["localhostProfile"] = "profiles/ours.json"
    containers = [with_profile(unconfined, name="worker"), {"name": "sidecar"}, None]
    spec = with_profile(
        default, containers=containers, initContainers=[with_profile(own, name="prepare")]
    )
    assert profiles(spec) == {"": default, "worker": unconfined, "prepare": own}


@pytest.mark.parametrize(
    "spec", [{}, {"containers": None, "initContainers": None, "securityContext": None}]
)
def test_of_a_template_without_any(spec: Any) -> None:
    assert profiles(spec) == {}


PATHS = (1, "/etc/ours.json", "a/../../ours.json", "x" * 254)
OF_NODES = [
    {"type": "Localhost"},
    *({"type": "Localhost", "localhostProfile": path} for path in PATHS),
]


@pytest.mark.parametrize(
    "profile", [None, "RuntimeDefault", [], {}, {"type": "runtimedefault"}, {"type": 1}, *OF_NODES]
)
def test_what_the_api_server_would_refuse_or_is_too_long_is_none(profile: Any) -> None:
    assert profiles(with_profile(profile)) == {}
    assert profiles({"securityContext": profile}) == {}
    assert profiles({"containers": [with_profile({"type": "RuntimeDefault"}, name="x" * 64)]}) == {}

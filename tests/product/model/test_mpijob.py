"""The fields of a MPIJob that we read, and the operator's defaults for those that are missing."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic.model import job_facts, mpijob, seccomp
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.wire import seconds
from tests.product.webhook.objects import mpi_job


def read(text: str) -> MPIJob:
    return msgspec.json.decode(text, type=MPIJob)


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ("{}", 0),
        ('{"mpiReplicaSpecs": {"Launcher": {}}}', 0),
        ('{"mpiReplicaSpecs": {"Worker": null}}', 0),
        ('{"mpiReplicaSpecs": {"Worker": {}}}', None),
        ('{"mpiReplicaSpecs": {"Worker": {"replicas": null}}}', None),
        ('{"mpiReplicaSpecs": {"Worker": {"replicas": 0}}}', 0),
        ('{"mpiReplicaSpecs": {"Worker": {"replicas": 3, "colour": {}}}}', 3),
    ],
)
def test_how_many_workers_a_job_asks_for(spec: str, replicas: int | None) -> None:
    assert read(f'{{"metadata": {{}}, "spec": {spec}}}').replicas == replicas


def test_slots_and_clean_pod_policy_have_the_operators_defaults() -> None:
    bare = read('{"metadata": {}}')
    assert (bare.slots, job_facts.of(bare).clean_pod_policy) == (1, "None")
    said = read('{"metadata": {}, "spec": {"slotsPerWorker": 4, "cleanPodPolicy": "Running"}}')
    assert (said.slots, job_facts.of(said).clean_pod_policy) == (4, "Running")


def test_the_launchers_texts_are_commands_arguments_and_environment_values() -> None:
    job = read(
        '{"metadata": {}, "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": ['
        '{"command": ["sh", "-c"], "args": ["train"], "env": [{"name": "A", "value": "b"}, {"name": "C"}]},'
        '{"name": "side-car"}]}}}}}}'
    )
    assert [text for container in job.containers("launcher") for text in container.texts()] == [
        "sh",
        "-c",
        "train",
        "b",
    ]
    assert read('{"metadata": {}}').containers("launcher") == []


def test_only_a_condition_that_is_true_counts() -> None:
    job = read(
        '{"metadata": {}, "status": {"conditions": [{"type": "Failed", "status": "False"},'
        '{"type": "Running", "status": "True", "reason": "MPIJobRunning"}]}}'
    )
    assert job.condition("Failed") is None
    running = job.condition("Running")
    assert running is not None
    assert running.reason == "MPIJobRunning"


def test_a_job_of_thousands_of_containers_is_refused_and_commas_in_a_short_one_are_not() -> None:
    launcher = '{"metadata":{},"spec":{"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{"containers":[%s]}}}}}}'
    assert len(mpijob.decode((launcher % ",".join(["{}"] * 1000)).encode()).containers("launcher")) == 1000
    with pytest.raises(msgspec.DecodeError, match="more than 5,000 fields"):
        mpijob.decode((launcher % ",".join(["{}"] * 6000)).encode())
    with pytest.raises(msgspec.DecodeError, match="more than 5,000 fields"):
        mpijob.decode((launcher % ",".join(["null"] * 6000)).encode())
    script = json.dumps("x = f(a, b, c, (1,2))\n" * 3000)
    assert mpijob.decode((launcher % f'{{"args":[{script}]}}').encode()).containers("launcher")


@pytest.mark.parametrize(
    ("manager", "path", "named"),
    [
        ("argocd-controller", ("f:spec", "f:mpiReplicaSpecs", "f:Worker", "f:replicas"), True),
        ("kubectl-edit", ("f:spec", "f:mpiReplicaSpecs", "f:Worker", "f:replicas"), False),
        ("argocd-controller", ("f:spec", "f:mpiReplicaSpecs", "f:Worker", "f:template"), False),
        ("argocd-controller", (), False),
    ],
)
def test_a_gitops_tool_that_was_the_last_to_set_the_size_is_named(
    manager: str, path: tuple[str, ...], *, named: bool
) -> None:
    fields: dict[str, object] = {}
    for key in reversed(path):
        fields = {key: fields}
    entries = [{"manager": "kubectl-create"}, {"manager": manager, "fieldsV1": fields}]
    job = read(json.dumps({"metadata": {"managedFields": entries}}))
    assert job.size_manager == (manager if named else "")
    assert read('{"metadata": {"managedFields": null}}').size_manager == ""


def test_the_size_is_as_old_as_the_last_write_of_a_manager_that_has_it() -> None:
    size: dict[str, Any] = {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {"f:replicas": {}}}}}
    entries = [
        {"manager": "kubectl-create", "time": "2026-01-01T00:00:00Z", "fieldsV1": size},
        {"manager": "kubectl", "subresource": "scale", "time": "2026-01-01T00:00:09Z", "fieldsV1": size},
        {"manager": "kubectl-annotate", "time": "2026-01-01T01:00:00Z", "fieldsV1": {"f:metadata": {}}},
    ]
    job = read(json.dumps({"metadata": {"managedFields": entries}}))
    assert job.resized_at == seconds("2026-01-01T00:00:09Z")
    assert read('{"metadata": {}}').resized_at == 0.0


def profiles(spec: Any) -> Any:
    job = mpi_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] = spec
    return seccomp.profiles(mpijob.decode(json.dumps(job).encode()).pod("worker"))


def with_profile(profile: Any, **more: Any) -> Any:
    return {**more, "securityContext": {"seccompProfile": profile}}


def test_of_the_pod_and_of_containers_by_name() -> None:
    default, unconfined, own = {"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost"}
    own["localhostProfile"] = "profiles/ours.json"
    containers = [with_profile(unconfined, name="worker"), {"name": "sidecar"}, None]
    spec = with_profile(default, containers=containers, initContainers=[with_profile(own, name="prepare")])
    assert profiles(spec) == {"": default, "worker": unconfined, "prepare": own}


@pytest.mark.parametrize("spec", [{}, {"containers": None, "initContainers": None, "securityContext": None}])
def test_of_a_template_without_any(spec: Any) -> None:
    assert profiles(spec) == {}


@pytest.mark.parametrize(
    "profile",
    [
        None,
        "RuntimeDefault",
        [],
        {},
        {"type": "runtimedefault"},
        {"type": 1},
        {"type": "Localhost"},
        {"type": "Localhost", "localhostProfile": 1},
        {"type": "Localhost", "localhostProfile": "/etc/ours.json"},
        {"type": "Localhost", "localhostProfile": "a/../../ours.json"},
        {"type": "Localhost", "localhostProfile": "x" * 254},
    ],
)
def test_what_the_api_server_would_refuse_or_is_too_long_is_none(profile: Any) -> None:
    assert profiles(with_profile(profile)) == {}
    assert profiles({"securityContext": profile}) == {}
    assert profiles({"containers": [with_profile({"type": "RuntimeDefault"}, name="x" * 64)]}) == {}

"""The seccomp profiles of a template: only those that the API server takes in a pod."""

import json
from typing import Any

import pytest

from mpijob_elastic.model import mpijob, seccomp
from tests.product.webhook.objects import mpi_job


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

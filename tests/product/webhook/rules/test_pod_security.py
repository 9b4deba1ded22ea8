"""Seccomp profiles of the templates on the pods that the operator made without them, and a restricted kubectl-delivery.

tests/lab/test_restricted_namespace.py asks the API server's own check of the standard.
"""

import copy
from collections.abc import Iterable
from typing import Any

import pytest

from lab.operator import objects
from tests.product.webhook.answers import patched
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, mpi_job
from webhook.rules import pod_security

DEFAULT = {"type": "RuntimeDefault"}
OWN = {"type": "Localhost", "localhostProfile": "ours.json"}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {"runAsNonRoot": True, "seccompProfile": DEFAULT}
DELIVERY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": DEFAULT,
}
AS_THE_POD = {field: value for field, value in DELIVERY.items() if field != "runAsUser"}


def made(
    pod: Object | None, container: Object | None, *, role: str = "Worker", command: list[str] = ELASTIC
) -> tuple[Any, Any]:
    """A job with these security contexts, and the pod of that role that the operator and the API server make of it."""
    job = mpi_job(command=command)
    spec = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    spec |= {"securityContext": pod} if pod is not None else {}
    spec["containers"][0] |= {"securityContext": container} if container is not None else {}
    created = copy.deepcopy(objects.launcher(job) if role == "Launcher" else objects.worker(job, 0))
    created["spec"]["securityContext"] = dropped(pod or {})
    if container is not None:
        created["spec"]["containers"][0]["securityContext"] = dropped(container)
    return job, created


def dropped(context: Object) -> Object:
    return {field: value for field, value in context.items() if field != "seccompProfile"}


def contexts(job: Object, pod: Object) -> list[Object | None]:
    """The security contexts of the patched pod, its containers and its init containers."""
    stored = patched(pod_security.restored, pod, job)
    places: Iterable[Object] = (
        stored["spec"],
        *stored["spec"]["containers"],
        *stored["spec"].get("initContainers", ()),
    )
    return [place.get("securityContext") for place in places]


@pytest.mark.parametrize("command", [ELASTIC, PLAIN])
def test_a_pod_gets_the_profiles_of_its_template(command: list[str]) -> None:
    job, pod = made({"runAsUser": 7, "seccompProfile": DEFAULT}, {"seccompProfile": OWN}, command=command)
    assert contexts(job, pod) == [{"runAsUser": 7, "seccompProfile": DEFAULT}, {"seccompProfile": OWN}]


def test_a_container_without_a_context_gets_one_and_others_are_left() -> None:
    job, pod = made(None, {"seccompProfile": OWN})
    del pod["spec"]["containers"][0]["securityContext"]
    pod["spec"]["containers"].append({"name": "injected"})
    assert contexts(job, pod) == [{}, {"seccompProfile": OWN}, None]


def test_a_profile_that_the_pod_has_stays() -> None:
    job, pod = made({"seccompProfile": DEFAULT}, None)
    pod["spec"]["securityContext"] = {"seccompProfile": OWN}
    assert patched(pod_security.restored, pod, job) == pod


@pytest.mark.parametrize(
    ("pod", "container", "delivery"),
    [
        pytest.param(POD, CONTAINER, DELIVERY, id="restricted"),
        pytest.param({}, {**POD, **CONTAINER}, DELIVERY, id="all in the container"),
        pytest.param({"runAsUser": 0}, {**POD, **CONTAINER, "runAsUser": 7}, DELIVERY, id="root but for the container"),
        pytest.param(POD, CONTAINER | {"capabilities": {"add": ["X"], "drop": ["ALL"]}}, DELIVERY, id="a capability"),
        pytest.param({**POD, "seccompProfile": OWN}, CONTAINER, DELIVERY, id="a profile of its own"),
        pytest.param({**POD, "runAsUser": 7}, CONTAINER, AS_THE_POD, id="the user of the pod"),
        pytest.param(None, None, None, id="nothing said"),
        pytest.param({"runAsNonRoot": True}, CONTAINER, None, id="no profile"),
        pytest.param({"seccompProfile": DEFAULT}, CONTAINER, None, id="perhaps root"),
        pytest.param({**POD, "seccompProfile": {"type": "Unconfined"}}, CONTAINER, None, id="unconfined"),
        pytest.param(POD, {**CONTAINER, "runAsNonRoot": False}, None, id="root in the container"),
        pytest.param(POD, {**CONTAINER, "allowPrivilegeEscalation": True}, None, id="escalation"),
        pytest.param(POD, {**CONTAINER, "capabilities": {"drop": ["NET_RAW"]}}, None, id="few capabilities dropped"),
        pytest.param(POD, {"allowPrivilegeEscalation": False}, None, id="no capabilities dropped"),
        pytest.param(POD, None, None, id="no context in the container"),
    ],
)
def test_kubectl_delivery_is_restricted_beside_a_restricted_launcher_only(
    pod: Object | None, container: Object | None, delivery: Object | None
) -> None:
    assert contexts(*made(pod, container, role="Launcher")) == [pod or {}, container, delivery]


def test_a_sidecar_that_is_not_restricted_leaves_kubectl_delivery_as_it_is() -> None:
    job, created = made(POD, CONTAINER, role="Launcher")
    created["spec"]["containers"].append({"name": "injected"})
    assert contexts(job, created) == [POD, CONTAINER, None, None]

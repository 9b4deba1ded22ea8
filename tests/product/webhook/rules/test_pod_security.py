"""Seccomp profiles of the templates on the pods that the operator made without them, and a restricted kubectl-delivery.

tests/lab/test_restricted_namespace.py asks the API server's own check of the standard.
"""

import copy
import json
from collections.abc import Iterable
from typing import Any

import jsonpatch
import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, mpi_job
from webhook.rules import mutate, pod_security

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


def made(pod: Object | None, container: Object | None, *, role: str, command: list[str] = ELASTIC) -> tuple[Any, Any]:
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


def patched(job: Object | None, pod: Object) -> Object:
    facts = job_facts.read(json.dumps(job).encode()) if job else None
    changed: Object = jsonpatch.apply_patch(pod, pod_security.restored(msgspec.convert(pod, mutate.Pod), facts))
    return changed


def contexts(pod: Object) -> list[Object | None]:
    """The security contexts of the pod, its containers and its init containers."""
    places: Iterable[Object] = (pod["spec"], *pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
    return [place.get("securityContext") for place in places]


@pytest.mark.parametrize("command", [ELASTIC, PLAIN])
def test_a_pod_gets_the_profiles_of_its_template(command: list[str]) -> None:
    job, pod = made(
        {"runAsUser": 7, "seccompProfile": DEFAULT}, {"seccompProfile": OWN}, role="Worker", command=command
    )
    changed = patched(job, pod)
    assert contexts(changed) == [{"runAsUser": 7, "seccompProfile": DEFAULT}, {"seccompProfile": OWN}]
    assert patched(job, changed) == changed


def test_a_container_without_a_context_gets_one_and_others_are_left() -> None:
    job, pod = made(None, {"seccompProfile": OWN}, role="Worker")
    del pod["spec"]["containers"][0]["securityContext"]
    pod["spec"]["containers"].append({"name": "injected"})
    assert contexts(patched(job, pod)) == [{}, {"seccompProfile": OWN}, None]


def test_a_profile_that_the_pod_has_stays() -> None:
    job, pod = made({"seccompProfile": DEFAULT}, None, role="Worker")
    pod["spec"]["securityContext"] = {"seccompProfile": OWN}
    assert patched(job, pod) == pod


def test_only_the_pods_of_the_job_itself_get_them() -> None:
    job, pod = made(POD, CONTAINER, role="Worker")
    later = {**job, "metadata": {**job["metadata"], "uid": "of a later job of this name"}}
    for known in (later, None):
        assert patched(known, pod) == pod


@pytest.mark.parametrize(
    ("pod", "container"),
    [
        (POD, CONTAINER),
        ({}, {**POD, **CONTAINER}),
        ({"runAsUser": 0}, {**POD, **CONTAINER, "runAsUser": 7}),
        (POD, {**CONTAINER, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}),
        ({**POD, "seccompProfile": OWN}, CONTAINER),
    ],
)
def test_kubectl_delivery_is_restricted_beside_a_restricted_launcher(pod: Object, container: Object) -> None:
    job, created = made(pod, container, role="Launcher")
    changed = patched(job, created)
    assert contexts(changed) == [pod, container, DELIVERY]
    assert patched(job, changed) == changed


def test_kubectl_delivery_runs_as_the_user_of_the_pod() -> None:
    job, created = made({**POD, "runAsUser": 7}, CONTAINER, role="Launcher")
    delivery = contexts(patched(job, created))[-1]
    assert delivery == {field: value for field, value in DELIVERY.items() if field != "runAsUser"}


@pytest.mark.parametrize(
    ("pod", "container"),
    [
        (None, None),
        ({"runAsNonRoot": True}, CONTAINER),
        ({"seccompProfile": DEFAULT}, CONTAINER),
        ({**POD, "seccompProfile": {"type": "Unconfined"}}, CONTAINER),
        (POD, {**CONTAINER, "runAsNonRoot": False}),
        (POD, {**CONTAINER, "allowPrivilegeEscalation": True}),
        (POD, {**CONTAINER, "capabilities": {"drop": ["NET_RAW"]}}),
        (POD, {"allowPrivilegeEscalation": False}),
        (POD, None),
    ],
)
def test_kubectl_delivery_stays_as_it_is_beside_any_other(pod: Object | None, container: Object | None) -> None:
    job, created = made(pod, container, role="Launcher")
    assert contexts(patched(job, created))[-1] is None


def test_a_sidecar_that_is_not_restricted_leaves_kubectl_delivery_as_it_is() -> None:
    job, created = made(POD, CONTAINER, role="Launcher")
    created["spec"]["containers"].append({"name": "injected"})
    assert contexts(patched(job, created))[-1] is None

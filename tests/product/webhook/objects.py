"""What the API server sends to the webhook: objects as the operator makes them, and the reviews that carry them."""

import json
from typing import Any

from lab.operator import objects
from lab.operator.objects import ELASTIC, PLAIN, Object, mpi_job

__all__ = [
    "ELASTIC",
    "PLAIN",
    "Object",
    "body",
    "config_map",
    "launcher_pod",
    "mpi_job",
    "review",
    "worker_pod",
]


def launcher_pod(**job: Any) -> Object:
    """The launcher pod that mpi-operator v0.2.3 creates for `mpi_job(**job)`."""
    return objects.launcher(mpi_job(**job))


def worker_pod(index: int = 0) -> Object:
    """A worker pod of it."""
    return objects.worker(mpi_job(), index)


def config_map(**job: Any) -> Object:
    """The ConfigMap that it creates."""
    return objects.config_map(mpi_job(**job))


def review(obj: Object | None, *, old: Object | None = None, **request: Any) -> Object:
    """An AdmissionReview as the API server sends it."""
    api_version, kind = (obj or {}).get("apiVersion", "v1"), (obj or {}).get("kind", "Pod")
    group, _, version = str(api_version).rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": f"{str(kind).lower()}s"},
            "name": (obj or {}).get("metadata", {}).get("name", ""),
            "namespace": "default",
            "operation": "UPDATE" if old else "CREATE",
            "userInfo": {"username": "system:serviceaccount:mpi-operator:mpi-operator"},
            "object": obj,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **request,
        },
    }


def body(obj: Object | None, *, old: Object | None = None, **request: Any) -> bytes:
    """The same, as it goes over the wire."""
    return json.dumps(review(obj, old=old, **request)).encode()

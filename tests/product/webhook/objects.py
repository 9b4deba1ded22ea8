"""Objects as the operator and the API server make them, and the reviews that carry them."""

import json
from typing import Any

from lab.operator import objects

Object = dict[str, Any]


def mpi_job(
    *,
    name: str = "train",
    replicas: int = 2,
    slots: int = 1,
    command: list[str] | None = None,
    annotations: dict[str, str] | None = None,
    conditions: list[str] | None = None,
) -> Object:
    """A MPIJob; `conditions` are the types that are True, so one that the operator has seen has at least Created."""
    launcher = command or PLAIN
    job: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "default", "uid": "5f1b", "annotations": annotations or {}},
        "spec": {
            "slotsPerWorker": slots,
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": _template("launcher", launcher)},
                "Worker": {"replicas": replicas, "template": _template("worker", None)},
            },
        },
    }
    if conditions is not None:
        job["status"] = {"conditions": [{"type": kind, "status": "True", "reason": kind} for kind in conditions]}
    return job


ELASTIC = ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "train.py"]
PLAIN = ["mpirun", "python", "train.py"]


def launcher_pod(**job: Any) -> Object:
    """The launcher pod that mpi-operator v0.2.3 creates for `mpi_job(**job)`; elastic unless a command is given."""
    return objects.launcher(mpi_job(**{"command": ELASTIC, **job}))


def worker_pod() -> Object:
    """A worker pod of it."""
    return objects.worker(mpi_job(), 0)


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


def _template(name: str, command: list[str] | None) -> Object:
    container: Object = {"name": name, "image": "horovod:test"}
    return {"spec": {"containers": [{**container, "command": command} if command else container]}}

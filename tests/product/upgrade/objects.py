"""Objects of a running job, as the API server has them."""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model import memory_text
from mpijob_elastic.model.memory import Memory

Object = dict[str, Any]
SCRIPT = names.discover_hosts(["train-worker-0"], slots=1)


def job(annotations: dict[str, str] | None = None, *, replicas: int = 1) -> Object:
    metadata = {"name": "train", "namespace": "ml", "uid": "job", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}


def config_map(*, script: str | None = SCRIPT, managed: bool = True, owner: bool = True) -> Object:
    data = {"hostfile": "train-worker-0 slots=1\n", "kubexec.sh": "x"}
    annotations = {names.MEMORY: memory_text.render(Memory()), "theirs": "1"} if managed else {"theirs": "1"}
    return {
        "metadata": _owned("train-config", owner=owner) | {"annotations": annotations},
        "data": data | ({names.KEY_DISCOVER_HOSTS: script} if script is not None else {}),
    }


def launcher(*, mounts: bool = True, phase: str = "Running", refreshed: bool = True) -> Object:
    keys = ["kubexec.sh", "hostfile"] + [names.KEY_DISCOVER_HOSTS] * mounts
    volume = {"name": names.CONFIG_VOLUME, "configMap": {"items": [{"key": key, "path": key} for key in keys]}}
    annotations = {names.REFRESHED: "x"} if refreshed else {}
    return {
        "metadata": _owned("train-launcher", role="launcher") | {"annotations": annotations},
        "spec": {"volumes": [volume], "containers": [{"name": "main"}]},
        "status": {"phase": phase},
    }


def worker(index: int, *, phase: str = "Running") -> Object:
    return {"metadata": _owned(f"train-worker-{index}", role="worker"), "spec": {}, "status": {"phase": phase}}


def _owned(name: str, *, role: str = "", owner: bool = True) -> Object:
    reference = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "train", "uid": "job", "controller": True}
    labels = {names.LABEL_JOB_ROLE: role, names.LABEL_GROUP_NAME: names.GROUP} if role else {"app": "train"}
    return {
        "name": name,
        "namespace": "ml",
        "uid": name,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels,
        "ownerReferences": [reference] if owner else [],
    }

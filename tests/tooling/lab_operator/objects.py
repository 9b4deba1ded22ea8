"""Jobs and pods for the tests of the stand-in operator."""

from typing import Any

import msgspec

from lab.operator.job import MPIJob
from lab.operator.kinds import PODS, Resource
from lab.operator.sync import Look
from lab.operator.wire import Dependent, DependentMetadata, Owner, PodStatus, Status
from tests.lab.recording import World

NOW = "2026-01-02T03:04:05Z"
CONTAINERS = {"containers": [{"name": "main", "image": "horovod:test"}]}


def job(*, workers: int = 2, status: Status | None = None, **spec: Any) -> MPIJob:
    """Return job `ns/j` with uid `u`."""
    roles = {
        "Launcher": {"template": {"spec": CONTAINERS}},
        "Worker": {"replicas": workers, "template": {"spec": CONTAINERS}},
    }
    return MPIJob(
        metadata={"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        spec={"mpiReplicaSpecs": roles, **spec},
        status=status or Status(),
    )


def recorded_job(world: World) -> MPIJob:
    """Return the job of a recorded world, with the uid that recordings give it."""
    body = next(item for key, item in world.items() if key.startswith("MPIJob/"))
    body = {**body, "metadata": {**body["metadata"], "uid": "<uid of the MPIJob>"}}
    return msgspec.convert(body, MPIJob).with_defaults()


def owned(name: str, *, phase: str = "Pending", reason: str = "", uid: str = "u") -> Dependent:
    """Return an object that belongs to the job with that uid."""
    owner = Owner(api_version="kubeflow.org/v1", kind="MPIJob", name="j", uid=uid, controller=True)
    metadata = DependentMetadata(name=name, namespace="ns", resource_version="1", owner_references=(owner,))
    return Dependent(metadata=metadata, status=PodStatus(phase=phase, reason=reason))


def showing(*pods: Dependent, others: bool = True) -> Look:
    """Return a look at these pods, and where `others` at one object of each other kind under any name."""
    by_name = {pod.metadata.name: pod for pod in pods}

    def look(resource: Resource, name: str) -> Dependent | None:
        if resource == PODS:
            return by_name.get(name)
        return owned(name) if others else None

    return look


def part_of(whole: Any, part: Any) -> bool:
    """Tell whether all of `part` is in `whole`; lists must match item by item, empty strings may be left out."""
    if isinstance(part, dict):
        return all(value == "" or part_of(whole.get(key), value) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(part_of, whole, part))
    return bool(whole == part or whole == str(part))

"""The objects that mpi-operator v0.2.3 makes of a job, for tests without a lab and for fleets that no operator makes.

They are made from samples/two-workers.json: a job and what the operator made of it, read from an
API server. tests/lab/test_operator_samples.py holds the samples against the operator.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpijob_elastic.kube.resources import Resource

Object = dict[str, Any]

SERVICE_ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
ROLE_BINDINGS = Resource(
    group="rbac.authorization.k8s.io", version="v1", plural="rolebindings", kind="RoleBinding"
)
SAMPLES = Path(__file__).parent / "samples"
# In samples, in place of the job's uid.
UID = "<uid of the MPIJob>"
ELASTIC = [
    *("horovodrun", "-np", "1"),
    "--host-discovery-script",
    "/etc/mpi/discover_hosts.sh",
    "python",
    "train.py",
]
PLAIN = ["mpirun", "python", "train.py"]
_JOB = "scale"
_NAMESPACE = '"namespace": "default"'


def sample(name: str) -> dict[str, Object]:
    """Return a job and what the operator made of it, by KIND/NAME.

    Raise OSError if there is no such sample.
    """
    world: dict[str, Object] = json.loads((SAMPLES / f"{name}.json").read_text())
    return world


def mpi_job(
    *,
    name: str = "train",
    namespace: str = "default",
    uid: str = "5f1b",
    replicas: int = 2,
    slots: int = 1,
    command: Sequence[str] = ELASTIC,
    annotations: Mapping[str, str] | None = None,
    conditions: Iterable[str] | None = None,
) -> Object:
    """Return an MPIJob; `conditions` are the types that are True, so a job that the operator has seen has Created."""
    roles = {"Launcher": (1, {"command": [*command]}), "Worker": (replicas, {})}
    job: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "slotsPerWorker": slots,
            "mpiReplicaSpecs": {
                role: {
                    "replicas": number,
                    "template": {
                        "spec": {
                            "containers": [{"name": role.lower(), "image": "horovod:test"} | words]
                        }
                    },
                }
                for role, (number, words) in roles.items()
            },
        },
    }
    if conditions is not None:
        found = [{"type": kind, "status": "True", "reason": f"MPIJob{kind}"} for kind in conditions]
        job["status"] = {"conditions": found}
    return job


def config_map(job: Object) -> Object:
    """Return the ConfigMap of an MPIJob."""
    slots = job["spec"].get("slotsPerWorker") or 1
    made = _like("ConfigMap/scale-config", job)
    made["data"]["hostfile"] = "".join(f"{worker} slots={slots}\n" for worker in workers(job))
    return made


def service_account(job: Object) -> Object:
    """Return the launcher's ServiceAccount."""
    return _like("ServiceAccount/scale-launcher", job)


def role(job: Object) -> Object:
    """Return the launcher's Role."""
    made = _like("Role/scale-launcher", job)
    made["rules"][1]["resourceNames"] = workers(job)
    return made


def role_binding(job: Object) -> Object:
    """Return the RoleBinding of the launcher's Role."""
    return _like("RoleBinding/scale-launcher", job)


def launcher(job: Object) -> Object:
    """Return the launcher pod, before it is scheduled."""
    made = _like("Pod/scale-launcher", job)
    for variable in made["spec"]["initContainers"][0]["env"]:
        if variable["name"] == "NAMESPACE":
            variable["value"] = job["metadata"]["namespace"]
    return _pod(made, job, "Launcher")


def worker(job: Object, index: int) -> Object:
    """Return a worker pod, before it is scheduled; it sleeps unless its template has a command."""
    made = _like("Pod/scale-worker-0", job)
    made["metadata"]["name"] = workers(job, index + 1)[index]
    sleep = {key: made["spec"]["containers"][0][key] for key in ("command", "args")}
    pod = _pod(made, job, "Worker")
    first = pod["spec"]["containers"][0]
    if not first.get("command"):
        first |= sleep
    return pod


def stored(made: Object, *, phase: str = "Running") -> Object:
    """Return an object of a job as an API server keeps it: with a uid and a time of creation, a pod with its phase."""
    kept = {
        "uid": f"uid of {made['metadata']['name']}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"phase": phase}} if made["kind"] == "Pod" else {}
    return {**made, "metadata": {**made["metadata"], **kept}, **status}


def mounted(launcher_pod: Object) -> list[Object]:
    """Return the items of the job's ConfigMap that a launcher pod mounts."""
    [items] = [
        volume["configMap"]["items"]
        for volume in launcher_pod["spec"]["volumes"]
        if "configMap" in volume
    ]
    found: list[Object] = items
    return found


def workers(job: Object, count: int | None = None) -> list[str]:
    """Return the names of an MPIJob's workers, by index: of all that it asks for, or of `count`."""
    size = job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] if count is None else count
    return [f"{job['metadata']['name']}-worker-{index}" for index in range(size)]


def _like(key: str, job: Object) -> Object:
    """Return the sample's object as the operator would make it for the job."""
    metadata = job["metadata"]
    name = metadata["name"]
    text = json.dumps(_SAMPLE[key])
    for part in ("config", "launcher", "worker-0"):
        text = text.replace(f"{_JOB}-{part}", f"{name}-{part}")
    text = text.replace(f'"{_JOB}"', f'"{name}"').replace(
        _NAMESPACE, f'"namespace": "{metadata["namespace"]}"'
    )
    made: Object = json.loads(text.replace(UID, metadata["uid"]))
    return made


def _pod(made: Object, job: Object, kind: str) -> Object:
    """Return the sample's pod with the containers, node and annotations of the job's template."""
    template = job["spec"]["mpiReplicaSpecs"][kind]["template"]
    first, *others = template["spec"]["containers"]
    spec = {key: value for key, value in made["spec"].items() if key != "nodeName"}
    spec["containers"] = [_extended(first, made["spec"]["containers"][0]), *others]
    spec |= {key: value for key, value in template["spec"].items() if key == "nodeName"}
    annotations = template.get("metadata", {}).get("annotations")
    metadata = {**made["metadata"], **({"annotations": dict(annotations)} if annotations else {})}
    return {
        **{key: value for key, value in made.items() if key != "status"},
        "metadata": metadata,
        "spec": spec,
    }


def _extended(container: Object, made: Mapping[str, Any]) -> Object:
    """Return a template's first container with the environment and mounts that the operator adds."""
    added = {
        key: [*(container.get(key) or []), *made[key]]
        for key in ("env", "volumeMounts")
        if key in made
    }
    return {**container, **added}


_SAMPLE = sample("two-workers")

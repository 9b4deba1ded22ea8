"""The pods: what the operator adds to the templates of workers and launcher."""

from dataclasses import dataclass
from typing import Any

from lab.operator import KUBECTL_DELIVERY_IMAGE
from lab.operator.job import LAUNCHER, WORKER, MPIJob
from lab.operator.kinds import PODS
from lab.operator.shared import KUBECTL_DIRECTORY, of_kind

CONFIG_VOLUME = "mpi-job-config"
CONFIG_DIRECTORY = "/etc/mpi"
KUBECTL_VOLUME = "mpi-job-kubectl"
CONFIG_MOUNT = {"name": CONFIG_VOLUME, "mountPath": CONFIG_DIRECTORY}
KUBECTL_MOUNT = {"name": KUBECTL_VOLUME, "mountPath": KUBECTL_DIRECTORY}
KUBEXEC_ITEM = {"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555}
HOSTFILE_ITEM = {"key": "hostfile", "path": "hostfile", "mode": 0o444}
KUBECTL_RESOURCES = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
# The NVIDIA variables are emptied so that a launcher uses no GPU by mistake.
LAUNCHER_ENVIRONMENT = [
    {"name": "OMPI_MCA_plm_rsh_agent", "value": f"{CONFIG_DIRECTORY}/kubexec.sh"},
    {"name": "OMPI_MCA_orte_default_hostfile", "value": f"{CONFIG_DIRECTORY}/hostfile"},
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": ""},
    {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": ""},
]


@dataclass(frozen=True, kw_only=True)
class PodOptions:
    """What the operator was started with: a scheduler's name for gangs ("": none), and the init container's image."""

    gang_scheduler: str = ""
    kubectl_delivery_image: str = KUBECTL_DELIVERY_IMAGE


def worker(job: MPIJob, *, name: str, options: PodOptions) -> dict[str, Any]:
    """Return a worker pod; it sleeps unless its template has a command."""
    spec = _template(job, WORKER).get("spec", {})
    first, *others = spec["containers"]
    if not first.get("command"):
        first = {**first, "command": ["sleep"], "args": ["365d"]}
    first = _extended(first, "volumeMounts", CONFIG_MOUNT)
    spec = {**spec, "containers": [first, *others]}
    spec = _extended(spec, "volumes", _config_volume(job, KUBEXEC_ITEM))
    return _pod(job, WORKER, name=name, spec=spec, options=options)


def launcher(job: MPIJob, *, options: PodOptions) -> dict[str, Any]:
    """Return the launcher pod, with the init container that brings kubectl and waits for the workers."""
    spec = _template(job, LAUNCHER).get("spec", {})
    first, *others = spec["containers"]
    first = _extended(first, "env", *LAUNCHER_ENVIRONMENT)
    first = _extended(first, "volumeMounts", KUBECTL_MOUNT, CONFIG_MOUNT)
    spec = {**spec, "containers": [first, *others], "serviceAccountName": job.launcher}
    spec = _extended(spec, "initContainers", _kubectl_delivery(job, options.kubectl_delivery_image))
    volumes = {"name": KUBECTL_VOLUME, "emptyDir": {}}, _config_volume(job, KUBEXEC_ITEM, HOSTFILE_ITEM)
    return _pod(job, LAUNCHER, name=job.launcher, spec=_extended(spec, "volumes", *volumes), options=options)


def template_restart_policy(job: MPIJob) -> str | None:
    """Return the launcher template's own restart policy, which is overwritten."""
    return _template(job, LAUNCHER).get("spec", {}).get("restartPolicy") or None


def _template(job: MPIJob, role: str) -> dict[str, Any]:
    template: dict[str, Any] = job.replica_specs[role].get("template", {})
    return template


def _pod(job: MPIJob, role: str, *, name: str, spec: dict[str, Any], options: PodOptions) -> dict[str, Any]:
    # Annotations of the template are kept, labels are not.
    annotations = dict(_template(job, role).get("metadata", {}).get("annotations") or {})
    policy = job.replica_specs[role]["restartPolicy"]
    spec = {**spec, "restartPolicy": "Never" if policy == "ExitCode" else policy}
    if options.gang_scheduler:
        spec["schedulerName"] = options.gang_scheduler
        annotations["scheduling.k8s.io/group-name"] = job.name
    labels = {"group-name": "kubeflow.org", "mpi-job-name": job.name, "mpi-job-role": role.lower()}
    pod = of_kind(PODS, job, name=name, labels=labels, spec=spec)
    if annotations:
        pod["metadata"]["annotations"] = annotations
    return pod


def _config_volume(job: MPIJob, *items: dict[str, Any]) -> dict[str, Any]:
    return {"name": CONFIG_VOLUME, "configMap": {"name": job.config, "items": list(items)}}


def _kubectl_delivery(job: MPIJob, image: str) -> dict[str, Any]:
    return {
        "name": "kubectl-delivery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "TARGET_DIR", "value": KUBECTL_DIRECTORY}, {"name": "NAMESPACE", "value": job.namespace}],
        "volumeMounts": [KUBECTL_MOUNT, CONFIG_MOUNT],
        "resources": {"limits": KUBECTL_RESOURCES, "requests": KUBECTL_RESOURCES},
    }


def _extended(part: dict[str, Any], key: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {**part, key: [*(part.get(key) or []), *items]}

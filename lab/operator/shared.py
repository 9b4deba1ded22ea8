"""What launcher and workers share: ConfigMap, ServiceAccount, Role, RoleBinding, PodGroup."""

from typing import Any

from lab.operator.job import LAUNCHER, WORKER, MPIJob
from lab.operator.kinds import (
    CONFIG_MAPS,
    MPI_JOBS,
    POD_GROUPS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)

KUBECTL_DIRECTORY = "/opt/kube"


def of_kind(resource: Resource, job: MPIJob, *, name: str, labels: dict[str, str], **content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return an object that belongs to the job."""
    owner = {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: dict[str, Any] = {"name": name, "namespace": job.namespace, "ownerReferences": [owner]}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def config_map(job: MPIJob) -> dict[str, Any]:
    """Return the ConfigMap with the hostfile and the script by which mpirun reaches a worker."""
    slots = job.spec.get("slotsPerWorker") or 1
    hostfile = "".join(f"{worker} slots={slots}\n" for worker in job.workers)
    data = {"hostfile": hostfile, "kubexec.sh": _kubexec(job.spec.get("mainContainer") or "")}
    return of_kind(CONFIG_MAPS, job, name=job.config, labels={"app": job.name}, data=data)


def service_account(job: MPIJob) -> dict[str, Any]:
    """Return the launcher's ServiceAccount."""
    return of_kind(SERVICE_ACCOUNTS, job, name=job.launcher, labels={"app": job.name})


def role(job: MPIJob) -> dict[str, Any]:
    """Return the launcher's Role: it may see all pods, and exec into the workers of this moment."""
    seen = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    executed = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
    rules = [seen, {**executed, "resourceNames": job.workers} if job.workers else executed]
    return of_kind(ROLES, job, name=job.launcher, labels={"app": job.name}, rules=rules)


def role_binding(job: MPIJob) -> dict[str, Any]:
    """Return the RoleBinding of the launcher's Role to its ServiceAccount."""
    return of_kind(
        ROLE_BINDINGS,
        job,
        name=job.launcher,
        labels={"app": job.name},
        subjects=[{"kind": SERVICE_ACCOUNTS.kind, "name": job.launcher, "namespace": job.namespace}],
        roleRef={"apiGroup": ROLES.group, "kind": ROLES.kind, "name": job.launcher},
    )


def pod_group(job: MPIJob) -> dict[str, Any]:
    """Return the PodGroup that asks for all workers of this moment and the launcher at once."""
    spec: dict[str, Any] = {"minMember": len(job.workers) + 1}
    if priority := _priority_class(job, LAUNCHER) or _priority_class(job, WORKER):
        spec["priorityClassName"] = priority
    return of_kind(POD_GROUPS, job, name=job.name, labels={}, spec=spec, status={})


def _kubexec(main_container: str) -> str:
    container = f" --container {main_container}" if main_container else ""
    lines = ["#!/bin/sh", "set -x", "POD_NAME=$1", "shift"]
    lines.append(f'{KUBECTL_DIRECTORY}/kubectl exec ${{POD_NAME}}{container} -- /bin/sh -c "$*"')
    return "\n".join(lines)


def _priority_class(job: MPIJob, kind: str) -> str | None:
    spec = job.replica_specs.get(kind, {})
    return spec.get("template", {}).get("spec", {}).get("priorityClassName") or None

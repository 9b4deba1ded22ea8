"""The writes of Workloads, what they send, and what a granted pod takes from its flavors; pure.

Kueue keeps quota reserved until its integration takes the reservation off; for MPIJobs we are that
integration.
https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2/workload_types.go
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue import topology
from mpijob_elastic.capabilities.kueue.facts import (
    LABEL_JOB_UID,
    WORKLOAD_PRIORITIES,
    WORKLOADS,
    Workload,
)
from mpijob_elastic.decide.actions import Action, Adopt, Delete, PodSet
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller, owner, timestamp

Object = dict[str, Any]

# The parts of a pod that decide what it needs, and where it fits.
_OF_POD = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "overhead",
    "runtimeClassName",
    "resources",
    "resourceClaims",
    "schedulerName",
)
# The reasons of an eviction after which a Workload queues again at once. After all others Kueue
# itself says when it does (pkg/controller/jobframework/reconciler.go).
_QUEUES_AGAIN = frozenset({"Preempted", "NodeFailures"})
_OF_CONTAINER = ("name", "image", "resources", "restartPolicy")


@dataclass(frozen=True, kw_only=True)
class CreateWorkload(Action):
    """Ask a queue of Kueue for the quota of pods, with a priority or that of a class."""

    words = "ask queue {self.queue} for quota with the Workload {self.name}"

    name: str
    queue: str
    pods: tuple[PodSet, ...]
    priority: int = 0
    priority_class: str = ""

    def about(self) -> tuple[object, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class _OfWorkload(Action):
    workload: Workload

    def about(self) -> tuple[object, ...]:
        return (self.workload.metadata.name,)


class MarkReady(_OfWorkload):
    """Say that the pods of a Workload run, which Kueue may wait for."""

    words = "tell Kueue that the pods of {self.workload.metadata.name} run"


class ClearWorkload(_OfWorkload):
    """Give preempted quota back, once nothing runs any more for which the quota was meant.

    The Workload queues again.
    """

    words = "tell Kueue that the quota of {self.workload.metadata.name} is free"
    rechecked = True
    frees = True


class FinishWorkload(_OfWorkload):
    """Say that a job has finished: its quota is free."""

    words = "tell Kueue that {self.workload.metadata.name} has finished"
    rechecked = True


@dataclass(frozen=True, kw_only=True)
class DeleteWorkload(Delete):
    """Stop asking for the quota."""

    words = "delete the Workload {self.ref.name}"
    rechecked = True
    at_version = False

    resource: Resource = WORKLOADS


@dataclass(frozen=True, kw_only=True)
class AdoptWorkload(Adopt):
    """Make the job and its pods the owners of a Workload.

    MultiKueue made the Workload for the job, or pods came after the Workload.
    """

    words = "make the job and its pods the owners of the Workload {self.ref.name}"

    resource: Resource = WORKLOADS


def created(
    view: JobView,
    action: CreateWorkload,
    *,
    pods: Iterable[Object],
    priority: int,
    near: Mapping[str, str] | None = None,
) -> Object:
    """Return the new Workload.

    pods: as just read, an example for each set of pods. The pods own the Workload, too: the garbage
    collector keeps it, and with it the quota of a deleted job, until they are gone. near: labels of
    the nodes among which an extra has to be.
    """
    is_extra = action.name != names.launcher(view.name)
    spec: Object = {
        "queueName": action.queue,
        "priority": priority,
        "podSets": [
            _pod_set(like, pod, is_extra=is_extra, near=near or {})
            for like, pod in zip(action.pods, pods, strict=True)
        ],
    }
    if action.priority_class:
        of_kueue = {"group": WORKLOAD_PRIORITIES.group, "kind": WORKLOAD_PRIORITIES.kind}
        spec["priorityClassRef"] = {**of_kueue, "name": action.priority_class}
    metadata = {
        "name": action.name,
        "labels": {names.LABEL_MANAGED_BY: names.PROGRAM, LABEL_JOB_UID: view.ref.uid},
        "ownerReferences": [
            controller(view.ref),
            *(owner(PODS, like.like) for like in action.pods),
        ],
    }
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def marked(view: JobView, action: _OfWorkload, workload: Object, *, now: float) -> Object:
    """Return the patch for the status of a Workload as just read.

    It holds every condition, because a merge patch replaces the whole list.
    """
    status = workload.get("status") or {}
    conditions = {found["type"]: found for found in status.get("conditions") or ()}
    at = timestamp(now)

    def put(kind: str, *, holds: bool, reason: str, message: str) -> None:
        new = {"type": kind, "status": str(holds), "reason": reason, "message": message}
        generation = workload["metadata"].get("generation", 0)
        conditions[kind] = {**new, "lastTransitionTime": at, "observedGeneration": generation}

    patch: Object = {}
    match action:
        case MarkReady():
            put("PodsReady", holds=True, reason="Started", message="the pods run")
        case FinishWorkload():
            reason = "Failed" if view.facts.succeeded_at is None else "Succeeded"
            put("Finished", holds=True, reason=reason, message="the job has finished")
        case ClearWorkload():
            evicted = conditions.get("Evicted", {})
            reason, message = evicted.get("reason", "Preempted"), evicted.get("message", "")
            put("QuotaReserved", holds=False, reason="Pending", message=message)
            put(
                "Admitted",
                holds=False,
                reason="NoReservation",
                message="the workload has no reservation",
            )
            # Only with this reason does Kueue limit the time until the next pods are ready.
            put("PodsReady", holds=False, reason="WaitForStart", message="the pods are gone")
            put("Requeued", holds=reason in _QUEUES_AGAIN, reason=reason, message=message)
            patch = {"admission": None}
    version = {"resourceVersion": workload["metadata"]["resourceVersion"]}
    return {"metadata": version, "status": {**patch, "conditions": list(conditions.values())}}


def of_flavor(flavor: Object) -> Object:
    """Return the additions of a ResourceFlavor to pods, in the form of a PodSetUpdate."""
    spec = flavor.get("spec") or {}
    return {"nodeSelector": spec.get("nodeLabels"), "tolerations": spec.get("tolerations")}


def updates(workload: Object, pod_set: str) -> list[Object]:
    """Return the PodSetUpdates for a set of pods of a Workload.

    AdmissionChecks wrote them into the status of the Workload, as just read.
    """
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    return [
        one
        for check in checks
        for one in check.get("podSetUpdates") or ()
        if one["name"] == pod_set
    ]


def placed(pod: Object, added: Sequence[Object]) -> list[Object]:
    """Return the operations that apply PodSetUpdates to a pod as just read.

    Values that the pod has itself stay.
    """
    patch: list[Object] = []
    for part, kind in (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "nodeSelector"),
    ):
        has = pod[part].get(kind) or {}
        wanted = {key: value for one in added for key, value in (one.get(kind) or {}).items()}
        if wanted.keys() - has.keys():
            patch.append({"op": "add", "path": f"/{part}/{kind}", "value": {**wanted, **has}})
    tolerations = pod["spec"].get("tolerations") or []
    wanted_too = [more for one in added for more in one.get("tolerations") or ()]
    if new := [one for one in wanted_too if one not in tolerations]:
        patch.append({"op": "add", "path": "/spec/tolerations", "value": [*tolerations, *new]})
    return patch


def _pod_set(like: PodSet, pod: Object, *, is_extra: bool, near: Mapping[str, str]) -> Object:
    found: Mapping[str, Any] = pod["spec"]
    spec = {key: found[key] for key in _OF_POD if key in found}
    if near:
        spec["nodeSelector"] = {**near, **(spec.get("nodeSelector") or {})}
    spec["restartPolicy"] = "Never"
    for kind in ("initContainers", "containers"):
        spec[kind] = [
            {key: one[key] for key in _OF_CONTAINER if key in one} for one in found.get(kind) or ()
        ]
    made = {"name": like.name, "count": like.count, "template": {"metadata": {}, "spec": spec}}
    if wanted := topology.request(pod["metadata"].get("annotations") or {}, extra=is_extra):
        made["topologyRequest"] = wanted
    return made

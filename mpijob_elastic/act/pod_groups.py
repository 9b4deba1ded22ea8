"""The writes of PodGroups: created under the name of their job, changed at the version that was decided on."""

from contextlib import suppress
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.owners import controller
from mpijob_elastic.decide.actions import LowerPodGroup, MakePodGroup, TunePodGroup
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import KUBERNETES_POD_GROUPS, Resource
from mpijob_elastic.model import gang
from mpijob_elastic.model.job import JobView, Ref


async def write(gate: Gate, view: JobView, action: MakePodGroup | LowerPodGroup | TunePodGroup) -> bytes:
    """Carry out an action and return the PodGroup. Raises NotLeader, Altered, or as `ApiWriter` does."""
    groups, namespace = gang.pod_groups(view.gang), view.namespace
    if isinstance(action, MakePodGroup):
        return await gate.create_object(groups, namespace=namespace, body=_new(groups, action))
    if isinstance(action, LowerPodGroup) and groups == KUBERNETES_POD_GROUPS:
        return await _renew(gate, view, action)
    ref = action.ref
    metadata: dict[str, object] = {"uid": ref.uid, "resourceVersion": ref.resource_version}
    if isinstance(action, LowerPodGroup):
        spec: dict[str, object] = {"minMember": action.after}
    else:
        spec, metadata["annotations"] = {"queue": action.queue} if action.queue else {}, dict(action.annotations)
    patch = {"metadata": metadata, "spec": spec}
    answer = await gate.patch_object(groups, namespace=namespace, name=ref.name, body=patch)
    if msgspec.json.decode(answer)["metadata"]["resourceVersion"] == ref.resource_version:
        raise Altered(f"PodGroup {namespace}/{ref.name}: an admission plugin changes what is written")
    return answer


async def _renew(gate: Gate, view: JobView, action: LowerPodGroup) -> bytes:
    """Make a PodGroup of Kubernetes again with a lower minCount, which is immutable; its pods name it and stay.

    Its finalizer would keep it as long as they run. After a crash in between it is as it was, or there is none.
    """
    groups, namespace, ref = KUBERNETES_POD_GROUPS, view.namespace, action.ref
    lift = [
        {"op": "test", "path": "/metadata/uid", "value": ref.uid},
        {"op": "test", "path": "/metadata/finalizers", "value": [names.KUBERNETES_PROTECTION]},
        {"op": "remove", "path": "/metadata/finalizers"},
    ]
    with suppress(errors.Invalid, errors.NotFound):  # it has none, or one of somebody else, which stays
        await gate.patch_object(groups, namespace=namespace, name=ref.name, body=lift)
    with suppress(errors.NotFound):
        await gate.delete_object(groups, namespace=namespace, name=ref.name, uid=ref.uid)
    wanted = _together(action.after)
    answer = await gate.create_object(groups, namespace=namespace, body={**_blank(groups, view.ref), "spec": wanted})
    if msgspec.json.decode(answer)["spec"]["schedulingPolicy"] != wanted["schedulingPolicy"]:
        raise Altered(f"PodGroup {namespace}/{ref.name}: an admission plugin changes what is written")
    return answer


def _new(groups: Resource, action: MakePodGroup) -> dict[str, object]:
    asked, made = action.gang, _blank(groups, action.job)
    if groups == KUBERNETES_POD_GROUPS:
        return {**made, "spec": _together(action.min_member)}
    spec = {"minMember": action.min_member, "queue": asked.queue, "priorityClassName": asked.priority_class}
    made["metadata"]["annotations"] = dict(asked.annotations)
    return {**made, "spec": {key: value for key, value in spec.items() if value}}


def _blank(groups: Resource, job: Ref) -> dict[str, Any]:
    return {
        "apiVersion": groups.api_version,
        "kind": groups.kind,
        "metadata": {"name": job.name, "ownerReferences": [controller(job)]},
    }


def _together(count: int) -> dict[str, object]:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}

"""The writes of PodGroups: created under the name of their job, changed at the version that was decided on."""

import msgspec

from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.owners import controller
from mpijob_elastic.decide.actions import LowerPodGroup, MakePodGroup, TunePodGroup
from mpijob_elastic.kube.resources import KUBERNETES_POD_GROUPS, Resource
from mpijob_elastic.model import gang
from mpijob_elastic.model.job import JobView


async def write(gate: Gate, view: JobView, action: MakePodGroup | LowerPodGroup | TunePodGroup) -> bytes:
    """Carry out an action and return the PodGroup. Raises NotLeader, Altered, or as `ApiWriter` does."""
    groups, namespace = gang.pod_groups(view.facts.gang), view.namespace
    if isinstance(action, MakePodGroup):
        return await gate.create_object(groups, namespace=namespace, body=_new(groups, action))
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


def _new(groups: Resource, action: MakePodGroup) -> dict[str, object]:
    asked, job = action.gang, action.job
    metadata: dict[str, object] = {"name": job.name, "ownerReferences": [controller(job)]}
    spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": action.min_member}}}
    if groups != KUBERNETES_POD_GROUPS:
        metadata["annotations"] = dict(asked.annotations)
        fields = {"minMember": action.min_member, "queue": asked.queue, "priorityClassName": asked.priority_class}
        spec = {key: value for key, value in fields.items() if value}
    return {"apiVersion": groups.api_version, "kind": groups.kind, "metadata": metadata, "spec": spec}

"""The writes of PodGroups: created under the name of their job, changed at the version that was decided on."""

from collections.abc import Sequence

import msgspec

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.own import Operation
from mpijob_elastic.act.owners import controller
from mpijob_elastic.act.writer import Seen
from mpijob_elastic.capabilities.gangs import Gangs, wire
from mpijob_elastic.capabilities.gangs import facts as gang
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.decide.actions import Action, LowerPodGroup, MakePodGroup, TunePodGroup, Ungate
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import KUBERNETES_POD_GROUPS, Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching


class Watch:
    """The PodGroups of each gang scheduler."""

    def __init__(self, watching: Watching) -> None:
        self._found: dict[Resource, ByJob[PodGroup]] = {
            groups: watching.by_job(groups, wire.read) for groups in gang.POD_GROUPS.values()
        }

    def seen(self, key: JobKey, view: JobView) -> Gangs | None:
        """Return the PodGroup of a job; None where it has none, and asks for none."""
        found = self._found[gang.pod_groups(view.facts.of(Gang))]
        group = found.of(key).get(key.name)
        mine = group if group and group.metadata.job_uid == view.ref.uid else None
        return Gangs(group=mine, serves=found.known) if mine or view.facts.of(Gang) else None


class PodGroups:
    """Carries out the writes of PodGroups."""

    kinds = (MakePodGroup, LowerPodGroup, TunePodGroup)

    def __init__(self, gate: Gate, seen: Seen, *, events: Events) -> None:
        self._gate = gate
        self._seen = seen
        self._events = events

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out a write. Raises NotLeader, Altered, or as `ApiWriter` does."""
        if isinstance(action, MakePodGroup | LowerPodGroup | TunePodGroup):
            self._seen.see(gang.pod_groups(view.facts.of(Gang)), await write(self._gate, view, action))
            self._events.emit(view, action.note)

    def forget(self, namespace: str, name: str) -> None:
        """Nothing is kept of a job."""

    async def place(self, _view: JobView, _pod: Identity, _action: Ungate) -> Sequence[Operation]:
        """Return nothing: it binds no pod."""
        return []


async def write(gate: Gate, view: JobView, action: MakePodGroup | LowerPodGroup | TunePodGroup) -> bytes:
    """Carry out an action and return the PodGroup. Raises NotLeader, Altered, or as `ApiWriter` does."""
    groups, namespace = gang.pod_groups(view.facts.of(Gang)), view.namespace
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

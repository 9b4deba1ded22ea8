"""The writes of PodGroups."""

from collections.abc import Mapping
from dataclasses import dataclass

from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS, Gang
from mpijob_elastic.decide.actions import (
    Create,
    Noted,
    Object,
    Patch,
    SetSize,
)
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.owners import controller


class LowerPodGroup(SetSize):
    """Let a gang scheduler wait for fewer pods of the job: `after` instead of `before`."""

    def change(self) -> Object:
        return {"spec": {"minMember": self.after}}


@dataclass(frozen=True, kw_only=True)
class MakePodGroup(Noted, Create):
    """Create the PodGroup of a job, controlled by it."""

    job: Identity
    min_member: int
    gang: Gang

    def content(self) -> Object:
        metadata: dict[str, object] = {"name": self.job.name, "ownerReferences": [controller(self.job)]}
        spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": self.min_member}}}
        if self.resource != KUBERNETES_POD_GROUPS:
            metadata["annotations"] = dict(self.gang.annotations)
            asked = self.gang
            spec = {"minMember": self.min_member, "queue": asked.queue, "priorityClassName": asked.priority_class}
        return {"metadata": metadata, "spec": {key: value for key, value in spec.items() if value}}


@dataclass(frozen=True, kw_only=True)
class TunePodGroup(Noted, Patch):
    """Give a PodGroup the queue ("" for the one that it has) and annotations of its job."""

    queue: str
    annotations: Mapping[str, str]

    def change(self) -> Object:
        spec = {"queue": self.queue} if self.queue else {}
        return {"metadata": {"annotations": dict(self.annotations)}, "spec": spec}

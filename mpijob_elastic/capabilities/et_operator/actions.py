"""The writes of ScaleIns and ScaleOuts, and of the size of a job as they ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpijob_elastic import names
from mpijob_elastic.capabilities.et_operator.facts import FAILED, SCALING, SUCCEEDED, ScaleRequest
from mpijob_elastic.decide.actions import (
    Note,
    Object,
    Operations,
    Patch,
    SetSize,
    normal,
    put,
    warning,
)
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.json_parts import controller, timestamp

# The reason of the condition is this word after `ScalingIn` or `ScalingOut`.
_ENDS = {SUCCEEDED: "Succeeded", FAILED: "Failed"}


@dataclass(frozen=True, kw_only=True)
class OwnRequest(Patch):
    """Make the MPIJob the controller of a request, so that the request goes with the job."""

    words = "let MPIJob {self.job.name} control {self.request.full_name}"

    request: ScaleRequest
    job: Identity

    def change(self) -> Operations:
        owner = controller(self.job)
        path, owners = "/metadata/ownerReferences", self.request.has_owners
        return (put(f"{path}/-", owner) if owners else put(path, [owner]),)

    def kept(self) -> Object | Operations:
        return {} if self.request.has_owners else self.change()


@dataclass(frozen=True, kw_only=True)
class SayPhase(Patch):
    """Write the phase of a request, and the condition that says why, with et-operator's words."""

    subresource = "status"

    request: ScaleRequest
    phase: str
    why: str
    pods: tuple[str, ...] = ()
    at: float = field(compare=False)

    @property
    def reason(self) -> str:
        """The reason of the condition."""
        kind = "ScalingOut" if self.request.grows else "ScalingIn"
        return (
            f"{kind}{_ENDS[self.phase]}"
            if self.phase in _ENDS
            else {SCALING: "ScalingStart"}.get(self.phase, "")
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        says = {SUCCEEDED: normal, FAILED: warning}.get(self.phase)
        return (says(self.reason, self.why),) if says else ()

    @property
    def told_on(self) -> tuple[Resource, Identity]:
        return self.resource, self.ref

    def says(self) -> str:
        return f"say {self.phase} in {self.request.full_name}: {self.why}"

    def about(self) -> tuple[object, ...]:
        return self.request.metadata.uid, self.phase

    def change(self) -> Operations:
        at = timestamp(self.at)
        condition = {
            "type": self.phase,
            "status": "True",
            "reason": self.reason,
            "message": self.why,
        }
        condition |= {"lastUpdateTime": at, "lastTransitionTime": at}
        pods = self.pods or self.request.pods
        # A request may be suspended and resumed at any time, so a condition replaces its like.
        others = [one for one in self.request.conditions if one.get("type") != self.phase]
        status = {
            "phase": self.phase,
            "conditions": [*others, condition],
            # et-operator's clients need these two.
            "replicaStatuses": {},
            "restartCount": 0,
            **({"addPods" if self.request.grows else "toDeletePods": list(pods)} if pods else {}),
        }
        return (put("/status", status),)


@dataclass(frozen=True, kw_only=True)
class SetWorkers(SetSize):
    """Set a job's size and parked workers for a request, with the mark that this was done."""

    resource: Resource = MPI_JOBS
    request: ScaleRequest
    mark: str
    parked: str

    def change(self) -> Mapping[str, object]:
        annotations = {names.PARKED: self.parked or None, names.SCALED_BY: self.mark}
        return {
            "metadata": {"annotations": annotations},
            "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": self.after}}},
        }

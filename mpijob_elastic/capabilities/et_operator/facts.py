"""ScaleIns and ScaleOuts of et-operator for an MPIJob, and the one that set its size last; pure.

https://github.com/AliyunContainerService/et-operator
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.json_parts import Owned, Wire, owned, seconds

_resource = partial(Resource, group="kai.alibabacloud.com", version="v1alpha1")
SCALE_INS = _resource(plural="scaleins", kind="ScaleIn")
SCALE_OUTS = _resource(plural="scaleouts", kind="ScaleOut")
# Where these are served, et-operator itself runs.
TRAINING_JOBS = _resource(plural="trainingjobs", kind="TrainingJob")

# In a request's `status.phase`, and the types of its conditions.
PENDING, SCALING, SUCCEEDED, FAILED = "Pending", "Scaling", "ScaleSucceeded", "ScaleFailed"
# The timeout of a ScaleOut that names none, in seconds.
TIMEOUT = 60

# The end of the mark (names.SCALED_BY) on an MPIJob if the ScaleOut was taken back after its
# timeout.
UNDONE = ":undone"


class ScaleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A ScaleIn or ScaleOut of an MPIJob."""

    #: `job`: the MPIJob, "" if another kind of object controls the request; `job_uid`: of the
    #: MPIJob that controls it.
    metadata: Owned
    resource: Resource
    #: Seconds since the epoch.
    created_at: float = 0.0
    deleting: bool = False
    #: It has owner references.
    has_owners: bool = False
    #: Workers to add or to delete, 0 if it gives no number.
    count: int = 0
    #: The pods that a ScaleIn names.
    names: tuple[str, ...] = ()
    #: It asks for a script to be run.
    script: bool = False
    #: Seconds.
    timeout: int = 0
    phase: str = ""
    #: The pods that leave or come, from its status once it scales.
    pods: tuple[str, ...] = ()
    #: The conditions in its status.
    conditions: tuple[Mapping[str, str], ...] = ()
    #: When it began to scale, in seconds since the epoch; 0 before that.
    started_at: float = 0.0

    @property
    def grows(self) -> bool:
        """True for a ScaleOut."""
        return self.resource.kind == "ScaleOut"

    @property
    def is_open(self) -> bool:
        """True until it has succeeded or failed, or is being deleted."""
        return not (self.deleting or self.phase in (SUCCEEDED, FAILED))

    @property
    def full_name(self) -> str:
        """The name of the request as et-operator writes it."""
        return f"{self.resource.kind}:{self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, kw_only=True)
class Scaled(CapabilityFacts):
    """The annotation that says which request set the size last."""

    asks = False
    by: str


class _Selector(Wire, frozen=True):
    name: str = ""


class _Workers(Wire, frozen=True):
    count: int | None = None
    pod_names: tuple[str, ...] | None = None


class _Spec(Wire, frozen=True):
    selector: _Selector | None = None
    to_delete: _Workers | None = None
    to_add: _Workers | None = None
    script: str = ""
    timeout: int | None = None


class _Status(Wire, frozen=True):
    phase: str = ""
    to_delete_pods: tuple[str, ...] | None = None
    add_pods: tuple[str, ...] | None = None
    conditions: tuple[dict[str, str], ...] | None = None


class _Request(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Request)


def _read(resource: Resource, raw: bytes) -> ScaleRequest:
    found = _decoder.decode(raw)
    metadata, spec, status = owned(found.metadata), found.spec or _Spec(), found.status or _Status()
    # An object that another controller owns is no request.
    is_ours = metadata.job or not found.metadata.controller
    job = spec.selector.name if spec.selector and is_ours else ""
    asked = spec.to_delete or spec.to_add or _Workers()
    conditions = status.conditions or ()
    return ScaleRequest(
        metadata=msgspec.structs.replace(metadata, job=job),
        resource=resource,
        created_at=seconds(found.metadata.creation_timestamp) or 0.0,
        deleting=found.metadata.deleting,
        has_owners=bool(found.metadata.owner_references),
        count=asked.count or 0,
        names=asked.pod_names or (),
        script=bool(spec.script),
        timeout=TIMEOUT if spec.timeout is None else spec.timeout,
        phase=status.phase,
        pods=status.to_delete_pods or status.add_pods or (),
        conditions=conditions,
        started_at=_started_at(conditions),
    )


def _started_at(conditions: Sequence[Mapping[str, str]]) -> float:
    """Return when the request began to scale; 0 before."""
    started = [one.get("lastTransitionTime") for one in conditions if one.get("type") == SCALING]
    return seconds(started[-1]) or 0.0 if started else 0.0


# The reader of each kind; of a TrainingJob it matters only that there is one. They raise
# msgspec.DecodeError for anything else.
read_training_job = partial(_read, TRAINING_JOBS)
READ = {resource: partial(_read, resource) for resource in (SCALE_INS, SCALE_OUTS)}

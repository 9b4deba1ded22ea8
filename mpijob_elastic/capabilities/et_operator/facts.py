"""ScaleIns and ScaleOuts of et-operator for an MPIJob, and the last of them that set its size; pure.

https://github.com/AliyunContainerService/et-operator
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import Known
from mpijob_elastic.model.wire import Owned, Wire, owned, seconds

_resource = partial(Resource, group="kai.alibabacloud.com", version="v1alpha1")
SCALE_INS = _resource(plural="scaleins", kind="ScaleIn")
SCALE_OUTS = _resource(plural="scaleouts", kind="ScaleOut")
# Where these are served, et-operator itself runs.
TRAINING_JOBS = _resource(plural="trainingjobs", kind="TrainingJob")

# In a request's `status.phase`, and the types of its conditions.
PENDING, SCALING, SUCCEEDED, FAILED = "Pending", "Scaling", "ScaleSucceeded", "ScaleFailed"
# Of a ScaleOut, in seconds, where it says none.
TIMEOUT = 60

# Ends the mark of a ScaleOut on its MPIJob (names.SCALED_BY) that was taken back after its timeout.
UNDONE = ":undone"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A ScaleIn or ScaleOut of MPIJob `metadata.job`; that is "" if another kind of object controls it.

    metadata.job_uid: of the MPIJob that controls it. names: the pods that a ScaleIn names. timeout:
    seconds. pods: that leave or come, as its status says once it scales. conditions: as its status
    has them. has_owners: it has some.
    """

    metadata: Owned
    resource: Resource
    created_at: float = 0.0
    deleting: bool = False
    has_owners: bool = False
    count: int = 0
    names: tuple[str, ...] = ()
    script: bool = False
    timeout: int = 0
    phase: str = ""
    pods: tuple[str, ...] = ()
    conditions: tuple[Mapping[str, str], ...] = ()
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
        """How et-operator calls it."""
        return f"{self.resource.kind}:{self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, kw_only=True)
class Scaled(Known):
    """The annotation that says which request set the size last."""

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


def _read(resource: Resource, raw: bytes) -> Request:
    found = _decoder.decode(raw)
    metadata, spec, status = owned(found.metadata), found.spec or _Spec(), found.status or _Status()
    job = (
        (spec.selector or _Selector()).name if metadata.job or not found.metadata.controller else ""
    )
    asked = spec.to_delete or spec.to_add or _Workers()
    conditions = status.conditions or ()
    started = [one.get("lastTransitionTime") for one in conditions if one.get("type") == SCALING]
    return Request(
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
        started_at=seconds(started[-1]) or 0.0 if started else 0.0,
    )


# How each is read; of a TrainingJob only that it is there. They raise msgspec.DecodeError for what
# is none.
read_training_job = partial(_read, TRAINING_JOBS)
READ = {resource: partial(_read, resource) for resource in (SCALE_INS, SCALE_OUTS)}

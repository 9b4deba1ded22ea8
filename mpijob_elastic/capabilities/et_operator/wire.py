"""ScaleIns and ScaleOuts in JSON, by their MPIJob."""

from functools import partial

import msgspec

from mpijob_elastic.capabilities.et_operator.api import SCALE_INS, SCALE_OUTS, SCALING, TIMEOUT, TRAINING_JOBS
from mpijob_elastic.capabilities.et_operator.facts import Request
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.wire import Wire, owned, seconds


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
    job = (spec.selector or _Selector()).name if metadata.job or not found.metadata.controller else ""
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


# How each is read; of a TrainingJob only that it is there. They raise msgspec.DecodeError for what is none.
read_training_job = partial(_read, TRAINING_JOBS)
READ = {resource: partial(_read, resource) for resource in (SCALE_INS, SCALE_OUTS)}

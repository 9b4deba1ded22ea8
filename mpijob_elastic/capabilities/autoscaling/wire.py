"""The facts of a HorizontalPodAutoscaler, for the job that it scales."""

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.api import SPEC_DIGEST
from mpijob_elastic.capabilities.autoscaling.facts import Autoscaler
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.wire import Wire, owned


class _Target(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class _Spec(Wire, frozen=True):
    scale_target_ref: _Target = _Target()


class _Autoscaler(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_Autoscaler)


def read(raw: bytes) -> Autoscaler:
    """Return the facts in an HPA's JSON. Raises msgspec.DecodeError if it is none."""
    found = _decoder.decode(raw)
    target, metadata = found.spec.scale_target_ref, found.metadata
    # An HPA uses only the group of apiVersion.
    scales = target.kind == MPI_JOBS.kind and target.api_version.partition("/")[0] == MPI_JOBS.group
    return Autoscaler(
        metadata=msgspec.structs.replace(owned(metadata), job=target.name if scales else ""),
        labelled=metadata.labels.get(names.LABEL_MANAGED_BY) == names.PROGRAM,
        deleting=metadata.deleting,
        digest=metadata.annotations.get(SPEC_DIGEST, ""),
    )

"""What must be known of a HorizontalPodAutoscaler to tell whether it suits its job; kept of every one.

Read in autoscaling/v1, which every API server has had and still has: what we use of it is the same in v2.
"""

from __future__ import annotations

import msgspec

from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.wire import Wire

AUTOSCALERS = Resource(
    group="autoscaling", version="v1", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)


class Identity(Wire, frozen=True, gc=False):
    """All that is read of the metadata; in this version the annotations may hold much."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Target(Wire, frozen=True, gc=False):
    """`scaleTargetRef`."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class Spec(Wire, frozen=True):
    """`spec`; minReplicas is 1 where it is absent."""

    scale_target_ref: Target = Target()
    min_replicas: int | None = None
    max_replicas: int = 0


class HpaFacts(Wire, frozen=True):
    """One HPA."""

    metadata: Identity
    spec: Spec = Spec()

    @property
    def scales_mpi_job(self) -> bool:
        """Whether its target is a MPIJob; a HPA takes the group from apiVersion and any version that is served."""
        target = self.spec.scale_target_ref
        return target.kind == MPI_JOBS.kind and target.api_version.partition("/")[0] == MPI_JOBS.group

    @property
    def job(self) -> tuple[str, str]:
        """Namespace and name of its target."""
        return self.metadata.namespace, self.spec.scale_target_ref.name

    @property
    def min_replicas(self) -> int:
        """The smallest size that it asks for."""
        return 1 if self.spec.min_replicas is None else self.spec.min_replicas

    @property
    def max_replicas(self) -> int:
        """The largest size that it asks for."""
        return self.spec.max_replicas


_decoder = msgspec.json.Decoder(HpaFacts)


def read(raw: bytes | msgspec.Raw) -> HpaFacts:
    """The HPA in its JSON. Raises msgspec.DecodeError where it is none."""
    return _decoder.decode(raw)

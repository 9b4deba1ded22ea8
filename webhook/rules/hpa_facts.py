"""The facts of a HorizontalPodAutoscaler that decide if it fits its job.

Read as autoscaling/v1, which every API server serves; the fields we use are the same in v2.
"""

import msgspec

from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.wire import Wire

AUTOSCALERS = Resource(
    group="autoscaling", version="v1", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)


class Target(Wire, frozen=True, gc=False):
    """`scaleTargetRef`."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class Spec(Wire, frozen=True):
    """`spec`; an absent minReplicas is 1."""

    scale_target_ref: Target = Target()
    min_replicas: int | None = None
    max_replicas: int = 0


class HpaFacts(Wire, frozen=True):
    """An HPA; its annotations are left out, because they may be large in this version."""

    metadata: Identity
    spec: Spec = Spec()

    @property
    def scales_mpi_job(self) -> bool:
        """True if its target is an MPIJob; an HPA uses only the group of apiVersion."""
        target = self.spec.scale_target_ref
        return target.kind == MPI_JOBS.kind and target.api_version.partition("/")[0] == MPI_JOBS.group

    @property
    def job(self) -> tuple[str, str]:
        """Namespace and name of its target."""
        return self.metadata.namespace, self.spec.scale_target_ref.name

    @property
    def min_replicas(self) -> int:
        """The smallest size it asks for."""
        return 1 if self.spec.min_replicas is None else self.spec.min_replicas


_decoder = msgspec.json.Decoder(HpaFacts)


def read(raw: bytes | msgspec.Raw) -> HpaFacts:
    """Return the HPA in its JSON. Raises msgspec.DecodeError if it is none."""
    return _decoder.decode(raw)

"""The facts of a PodGroup.

https://github.com/volcano-sh/apis/blob/master/pkg/apis/scheduling/v1beta1/types.go
https://github.com/kubernetes/api/blob/v0.36.3/scheduling/v1alpha2/types.go
"""

import msgspec

from mpijob_elastic.capabilities.gangs.api import KOORDINATOR_MATCH_POLICY, VOLCANO_TOPOLOGY_PREFIX
from mpijob_elastic.capabilities.gangs.facts import PodGroup
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.wire import Wire, owned


class _Together(Wire, frozen=True):
    min_count: int = 0


class _SchedulingPolicy(Wire, frozen=True):
    gang: _Together = _Together()


class _Spec(Wire, frozen=True):
    min_member: int = 0
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()  # of Kubernetes, in place of the first
    queue: str = ""


class _PodGroup(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


_OURS = (VOLCANO_TOPOLOGY_PREFIX, KOORDINATOR_MATCH_POLICY)
_decoder = msgspec.json.Decoder(_PodGroup)


def read(raw: bytes) -> PodGroup:
    """Return the facts in a PodGroup's JSON. Raises msgspec.DecodeError if it is none."""
    group = _decoder.decode(raw)
    said = group.metadata.annotations
    return PodGroup(
        metadata=owned(group.metadata),
        min_member=group.spec.min_member or group.spec.scheduling_policy.gang.min_count,
        queue=group.spec.queue,
        annotations={key: text for key, text in said.items() if key.startswith(_OURS)},
    )

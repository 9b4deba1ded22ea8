"""The facts of a PodGroup.

https://github.com/volcano-sh/apis/blob/master/pkg/apis/scheduling/v1beta1/types.go
https://github.com/kubernetes/api/blob/v0.36.3/scheduling/v1alpha2/types.go
"""

from collections.abc import Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.wire import Owned, Wire, owned


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


class GangFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A PodGroup; min_member: 0 if it waits for none. annotations: those that we write."""

    metadata: Owned
    min_member: int
    queue: str
    annotations: Mapping[str, str]


_OURS = (names.VOLCANO_TOPOLOGY_PREFIX, names.KOORDINATOR_MATCH_POLICY)
_decoder = msgspec.json.Decoder(_PodGroup)


def read(raw: bytes) -> GangFacts:
    """Return the facts in a PodGroup's JSON. Raises msgspec.DecodeError if it is none."""
    group = _decoder.decode(raw)
    said = group.metadata.annotations
    return GangFacts(
        metadata=owned(group.metadata),
        min_member=group.spec.min_member or group.spec.scheduling_policy.gang.min_count,
        queue=group.spec.queue,
        annotations={key: text for key, text in said.items() if key.startswith(_OURS)},
    )

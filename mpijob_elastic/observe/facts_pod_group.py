"""The facts of a PodGroup (scheduling.volcano.sh/v1beta1): its owner, and the number of pods it waits for.

https://github.com/volcano-sh/apis/blob/master/pkg/apis/scheduling/v1beta1/types.go
"""

from __future__ import annotations

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.owners import Owned, owned
from mpijob_elastic.model.wire import Wire


class _Spec(Wire, frozen=True):
    min_member: int = 0


class _PodGroup(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None


class GangFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A PodGroup; min_member: 0 if it waits for none."""

    metadata: Owned
    min_member: int


_decoder = msgspec.json.Decoder(_PodGroup)


def read(raw: bytes) -> GangFacts:
    """Return the facts in a PodGroup's JSON. Raises msgspec.DecodeError if it is none."""
    group = _decoder.decode(raw)
    return GangFacts(metadata=owned(group.metadata), min_member=group.spec.min_member if group.spec else 0)

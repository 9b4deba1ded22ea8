"""LimitRanges that refuse a placeholder, because it asks for 0; pure.

What is below `min` is refused, and so is a request of 0 by `maxLimitRequestRatio`. It does not matter if a worker names
the resource: the API server refuses a pod that does not, or fills in a default before the webhook makes it 0.
https://github.com/kubernetes/kubernetes/blob/v1.34.1/plugin/pkg/admission/limitranger/admission.go
"""

from collections.abc import Iterator

import msgspec

from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model import requests
from mpijob_elastic.model.wire import Wire

# The others are of volume claims and images.
_OF_PODS = ("Container", "Pod")


class _Limit(Wire, frozen=True):
    type: str = ""
    min: dict[str, str] | None = None
    max_limit_request_ratio: dict[str, str] | None = None


class _Spec(Wire, frozen=True):
    limits: list[_Limit] | None = None


class _LimitRange(Wire, frozen=True):
    metadata: Identity
    spec: _Spec = _Spec()


class LimitFacts(Wire, frozen=True):
    """A LimitRange. refuses: the first part that refuses a placeholder, "" if none does: nothing else is kept of it."""

    metadata: Identity
    refuses: str


_decoder = msgspec.json.Decoder(_LimitRange)


def read(raw: bytes) -> LimitFacts:
    """Return the facts in a LimitRange's JSON. Raises msgspec.DecodeError if it is none."""
    found = _decoder.decode(raw)
    return LimitFacts(metadata=found.metadata, refuses=next(_refusing(found.spec), ""))


def _refusing(spec: _Spec) -> Iterator[str]:
    for limit in spec.limits or ():
        parts = {"min": limit.min, "maxLimitRequestRatio": limit.max_limit_request_ratio}
        for part, amounts in parts.items() if limit.type in _OF_PODS else ():
            for resource, amount in requests.readable(amounts).items():
                if amount > 0:
                    yield f"{part} of {resource} for each {limit.type}"

"""Warn if a ResourceQuota of the namespace cannot take more workers; pure.

Nothing is refused: others may free what lacks, and quotas are changed. A quota with scopes is left out, because only
some pods count there. https://kubernetes.io/docs/concepts/policy/resource-quotas/
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model import requests
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.wire import Wire
from webhook.rules.lint import MOST


class _Quota(Wire, frozen=True):
    metadata: Identity
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class QuotaFacts(Wire, frozen=True):
    """A ResourceQuota. left: what it has left, by its keys; none where it has scopes."""

    metadata: Identity
    left: Mapping[str, int]


_decoder = msgspec.json.Decoder(_Quota)


def read(raw: bytes) -> QuotaFacts:
    """Return the quota in its JSON. Raises msgspec.DecodeError if it is none."""
    quota = _decoder.decode(raw)
    hard, used = (requests.readable(quota.status.get(part)) for part in ("hard", "used"))
    has_scopes = quota.spec.get("scopes") or quota.spec.get("scopeSelector")
    left = {} if has_scopes else {name: amount - used[name] for name, amount in hard.items()}
    return QuotaFacts(metadata=quota.metadata, left=left)


def shortages(job: JobFacts, quotas: Iterable[QuotaFacts], *, more: int) -> Iterator[str]:
    """Yield a warning for each of the first few amounts that do not suffice for so many more workers."""
    every = ((quota.metadata.name, *amount) for quota in quotas for amount in quota.left.items())
    asked = ((name, key, left, job.worker_counts.get(key, 0) * more) for name, key, left in every)
    for name, key, left, asks in islice((found for found in asked if 0 < found[3] > found[2]), MOST):
        has, need = requests.rendered(max(0, left)), requests.rendered(asks)
        yield f"ResourceQuota {name} has {has} {key} left, and {more} more workers need {need}: some are not created"

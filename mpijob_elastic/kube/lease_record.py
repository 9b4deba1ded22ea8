"""The Lease object, and the pure rules of who may write what into it.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/ ; the fields are used as client-go's
leader election uses them, so that `kubectl get lease` and other tools read them right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`spec` of a Lease; an empty or absent holder means that it is free."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseObject(msgspec.Struct, frozen=True, kw_only=True):
    """A Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


def claim(before: LeaseSpec, *, identity: str, seconds: float, now: datetime) -> LeaseSpec:
    """What a candidate writes to become or stay the holder."""
    taken_over = before.holder_identity != identity
    transitions = before.lease_transitions
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=math.ceil(seconds),
        acquire_time=micro_time(now) if taken_over else before.acquire_time,
        renew_time=micro_time(now),
        lease_transitions=(0 if transitions is None else transitions + 1) if taken_over else transitions,
    )


def release(before: LeaseSpec, *, now: datetime) -> LeaseSpec:
    """What the holder writes when it stops."""
    return msgspec.structs.replace(before, holder_identity="", lease_duration_seconds=1, renew_time=micro_time(now))


def micro_time(when: datetime) -> str:
    """A time as the API's MicroTime wants it: RFC 3339, UTC, six digits."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(kw_only=True)
class Rivals:
    """What a candidate has seen of others, and so from when on it may take the Lease.

    Only this process' own clock is used: a holder is given its lease's full duration from the moment when its last
    write was *seen*, which is later than the moment it was sent.

    - Another's Lease is free once it has not changed for its own duration.
    - A released Lease is free at once.
    - A missing Lease is free only after it was missed for a whole duration, since its holder may not know yet;
      and one that was made anew is not free before the holder that was seen in the old one has run out.
    """

    identity: str
    seconds: float
    _seen: tuple[str, str] | None = None
    _until: float = -math.inf

    def free_at(self, found: LeaseObject | None, now: float) -> float:
        """The time, on the clock of `now`, from which the Lease as just found may be taken."""
        if found and found.spec.holder_identity == self.identity:
            return now
        seen = (found.metadata.uid, found.metadata.resource_version) if found else ("", "")
        before, self._seen = self._seen, seen
        if seen == before:
            return self._until
        if found is None:
            self._until = max(self._until, now + self.seconds)
        elif found.spec.holder_identity:
            self._until = now + (found.spec.lease_duration_seconds or self.seconds)
        elif before is None or before[0] == found.metadata.uid:
            self._until = now
        return self._until

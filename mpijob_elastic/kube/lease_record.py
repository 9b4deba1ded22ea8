"""The Lease object, and the pure rules for taking it over.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/ ; the fields are used as client-go's
leader election uses them, so that `kubectl get lease` and other tools show them correctly.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`spec` of a Lease; a Lease with an empty or absent holder is free."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseObject(msgspec.Struct, frozen=True, kw_only=True):
    """A Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


def unclaimed(*, now: datetime) -> LeaseSpec:
    """Return the spec of a Lease that replaces a missing Lease; its time tells it from a Lease as installed."""
    return LeaseSpec(renew_time=micro_time(now))


def claim(before: LeaseSpec, *, identity: str, seconds: float, now: datetime) -> LeaseSpec:
    """Return the spec that a candidate writes to become or stay the holder."""
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
    """Return the spec that the holder writes when it stops."""
    return msgspec.structs.replace(before, holder_identity="", lease_duration_seconds=1, renew_time=micro_time(now))


def micro_time(when: datetime) -> str:
    """Return a time as MicroTime of the API: RFC 3339, UTC, six digits."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(kw_only=True)
class Rivals:
    """Tracks what a candidate has seen of others, to tell when it may take the Lease.

    Only the clock of this process is used: a holder gets the full duration of its lease from the moment when its last
    write was *seen*, which is later than the moment it was sent.

    - The Lease of another holder is free once it has not changed for its own duration.
    - A Lease that its holder released is free at once, and so is a Lease as installed, which nobody ever held.
    - A Lease that was deleted and recreated is free only after a whole duration, because its holder may not know yet.
      (One case is open: somebody deletes and reinstalls it under a leader, and a candidate that starts in the two
      seconds until the leader notices sees nothing unusual.)
    """

    identity: str
    seconds: float
    _seen: tuple[str, str] | None = None
    _until: float = -math.inf

    def free_at(self, found: LeaseObject, now: float) -> float:
        """Return the time, on the clock of `now`, from which the Lease as just found may be taken."""
        spec, uid = found.spec, found.metadata.uid
        if spec.holder_identity == self.identity:
            return now
        seen = (uid, found.metadata.resource_version)
        before, self._seen = self._seen, seen
        if seen == before:
            return self._until
        if spec.holder_identity:
            self._until = now + (spec.lease_duration_seconds or self.seconds)
        elif spec.lease_transitions is not None or (before is None and spec.renew_time is None):
            self._until = now
        elif before is None or before[0] != uid:
            self._until = now + self.seconds
        return self._until

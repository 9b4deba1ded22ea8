"""Leader election on a Lease that fences: a holder stops writing before another candidate starts.

The argument: a holder that cannot renew the Lease sent its last successful write of it at time s on
its own clock. Another candidate sees that write later than s, and waits `duration` from then on its
own clock. The holder leads only until s + `renew_deadline`, which is earlier by the margin
`duration - renew_deadline`. The clocks need not agree; their rates must not differ by more than
duration / renew_deadline. Hence:

- `held` compares the clock with s: it turns false in time even while the event loop, the process or
  the API server is frozen. Ask it right before every write.
- A write sent while the lease is held may still be under way: give it at most `time_left` seconds.
  Two cases cannot be bounded here: a process that stops between the question and the write, and a
  request stuck in the network. The preconditions of every write cover them.
- The Lease itself is written at its resourceVersion only, so one of two candidates loses.
- Every attempt has its own timeout, so one slow answer does not cost the leadership.
- The work is cancelled when the lease is lost. The lease is released after the work has stopped,
  for any reason.

`Rivals` has the rules for taking over, also after the Lease was deleted. The fields of a Lease are
used as client-go's leader election uses them, so that `kubectl get lease` and other tools show them
correctly (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/).
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import LEASES
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

log = logging.getLogger(__name__)

_SHORTEST_SLEEP = 0.01


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
    """Return the spec of a Lease that replaces a missing Lease.

    It has a time, which a Lease as installed does not have.
    """
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
        lease_transitions=(0 if transitions is None else transitions + 1)
        if taken_over
        else transitions,
    )


def release(before: LeaseSpec, *, now: datetime) -> LeaseSpec:
    """Return the spec that the holder writes when it stops."""
    return msgspec.structs.replace(
        before, holder_identity="", lease_duration_seconds=1, renew_time=micro_time(now)
    )


def micro_time(when: datetime) -> str:
    """Return a time as MicroTime of the API: RFC 3339, UTC, six digits."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(kw_only=True)
class Rivals:
    """Tracks what a candidate has seen of others, to tell when it may take the Lease.

    Only the clock of this process is used: a holder gets the full duration of its lease from the
    moment when its last write was *seen*, which is later than the moment when it was sent.

    - The Lease of another holder is free once it has not changed for its own duration.
    - A Lease that its holder released is free at once. A Lease as installed, which nobody ever
      held, is free at once, too.
    - A Lease that was deleted and recreated is free only after a whole duration, because its holder
      may not know yet. (One case is open: somebody deletes and reinstalls the Lease under a leader,
      and a candidate that starts in the two seconds until the leader notices sees nothing unusual.)
    """

    #: The candidate's own identity.
    identity: str
    #: Duration of a lease.
    seconds: float
    # Uid and resourceVersion of the Lease as last seen, and when it is free.
    _seen: tuple[str, str] | None = None
    _until: float = -math.inf

    def free_at(self, found: LeaseObject, now: float) -> float:
        """Return the time, on the clock of `now`, from which the Lease just found may be taken."""
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


_decode = msgspec.json.Decoder(LeaseObject).decode


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """The times of a lease, in seconds."""

    #: client-go's LeaseDuration.
    duration: float = 15.0
    #: client-go's RenewDeadline.
    renew_deadline: float = 10.0
    #: client-go's RetryPeriod.
    retry: float = 2.0
    #: Bound on one request for the Lease.
    attempt: float = 3.0
    #: Interval at which a waiting candidate reads the Lease.
    look: float = 0.8

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > 1.2 * self.retry:
            raise ValueError(
                f"lease times: duration {self.duration} must be above "
                f"renew_deadline {self.renew_deadline}, "
                f"and that above 1.2 times retry {self.retry}; defaults are 15, 10, 2"
            )


def awake_or_not() -> float:
    """Return seconds on a clock that never steps and, on Linux, counts the time of a suspension.

    `time.monotonic` stands still in a suspension, so a holder that wakes up would believe its lease
    is still young.
    """
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )


@dataclass(kw_only=True)
class Lease:
    """A candidate for the Lease."""

    client: ApiWriter
    namespace: str
    name: str
    #: Must be new for each process, for example host name and a random id.
    identity: str
    random: Random
    times: LeaseTimes = LeaseTimes()
    clock: Callable[[], float] = awake_or_not
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    # When the write that made us holder was sent; None while another candidate may hold the Lease.
    _granted: float | None = field(default=None, init=False)
    # The Lease as last read or written; None if it is missing.
    _found: LeaseObject | None = field(default=None, init=False)
    # True if `_found` is our last write, so that we can write again without a read.
    _fresh: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Derive the path of the Lease and its `Rivals` from the settings."""
        self._path = LEASES.path(self.namespace, self.name)
        self._rivals = Rivals(identity=self.identity, seconds=self.times.duration)

    def held(self) -> bool:
        """Return True if this process leads now."""
        return (
            self._granted is not None and self.clock() < self._granted + self.times.renew_deadline
        )

    def time_left(self) -> float:
        """Return the seconds until another candidate may lead; 0 if not held.

        This is the limit for a write that is sent now.
        """
        granted = self._granted
        return (
            max(0.0, granted + self.times.duration - self.clock())
            if granted is not None and self.held()
            else 0.0
        )

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, run `lead` while it is held, cancel `lead` when it is lost, repeat.

        Ends when `lead` ends, and raises what `lead` raised. When cancelled, stops `lead`, waits
        for its end, and releases the Lease.
        """
        while True:
            wait = await self._try()
            if not self.held():
                await asyncio.sleep(wait)
            elif await self._lead(lead):
                return

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        log.info("%s leads by Lease %s/%s", self.identity, self.namespace, self.name)
        work = asyncio.ensure_future(lead())
        keep = asyncio.create_task(self._keep())
        ended = False
        try:
            await asyncio.wait({work, keep}, return_when=asyncio.FIRST_COMPLETED)
            ended = work.done()
        finally:
            # The lease is still renewed while the work stops.
            await _stop(work)
            await _stop(keep)
            await self._release()
        if not ended:
            log.warning("%s lost Lease %s/%s", self.identity, self.namespace, self.name)
            keep.result()
        else:
            work.result()
        return ended

    async def _keep(self) -> None:
        wait = self._pause(self.times.retry)
        while self.held():
            # A timer may fire a hair early; the floor keeps that from becoming a loop.
            await asyncio.sleep(max(_SHORTEST_SLEEP, min(wait, self._until_deadline())))
            if self.held():
                wait = await self._try()

    async def _try(self) -> float:
        """Try once to become or stay the holder; return the seconds until the next attempt."""
        try:
            return await self._attempt()
        except (errors.KubeError, msgspec.DecodeError) as error:
            self._fresh = False
            log.warning("Lease %s/%s: %s", self.namespace, self.name, error)
            asked = error.retry_after if isinstance(error, errors.ApiError) else None
            return max(asked or 0.0, self._pause(self.times.retry))

    async def _attempt(self) -> float:
        if not self._fresh:
            raw = await self.client.find(self._path, limits=self._limits())
            self._found = None if raw is None else _decode(raw)
        found, now = self._found, self.clock()
        if found is None:
            # Only created here, and claimed later: a creation cannot depend on an earlier read.
            await self._write(None, unclaimed(now=self.now()))
            return 0.0
        free_at = self._rivals.free_at(found, now)
        if found.spec.holder_identity not in (None, "", self.identity):
            self._granted = None
        if now < free_at and not self.held():
            self._fresh = False
            return min(self._pause(self.times.look), free_at - now)
        sent = self.clock()
        spec = claim(
            found.spec, identity=self.identity, seconds=self.times.duration, now=self.now()
        )
        await self._write(found, spec)
        self._granted = sent
        return self._pause(self.times.retry)

    async def _release(self) -> None:
        found, self._granted = self._found, None
        if not (found and self._fresh):
            return
        try:
            await self._write(found, release(found.spec, now=self.now()))
        except (errors.KubeError, msgspec.DecodeError) as error:
            log.warning(
                "Lease %s/%s not released, so it must run out: %s", self.namespace, self.name, error
            )
        self._fresh = False

    async def _write(self, found: LeaseObject | None, spec: LeaseSpec) -> None:
        self._fresh = False
        if found:
            body = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": spec}
            answer = await self.client.patch_object(
                self._path, body=body, content_type=MERGE_PATCH, limits=self._limits()
            )
        else:
            metadata = {"namespace": self.namespace, "name": self.name}
            body = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": metadata,
                "spec": spec,
            }
            path = LEASES.path(self.namespace)
            answer = await self.client.create_object(path, body=body, limits=self._limits())
        self._found = _decode(answer)
        self._fresh = True

    def _limits(self) -> Timeouts:
        return Timeouts(attempt=min(self.times.attempt, self._until_deadline()), throttled=0)

    def _until_deadline(self) -> float:
        granted = self._granted
        return (
            granted + self.times.renew_deadline - self.clock()
            if granted is not None and self.held()
            else math.inf
        )

    def _pause(self, seconds: float) -> float:
        return seconds * self.random.uniform(0.75, 1.25)


async def _stop(task: asyncio.Future[None]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception():
            log.error(
                "the leader's work failed while it was being stopped", exc_info=task.exception()
            )

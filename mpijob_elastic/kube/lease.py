"""Leader election on a Lease that fences: a holder that cannot renew stops writing before another candidate starts.

The argument: a holder sends its last successful write of the Lease at time s on its own clock. Another candidate sees
that write later than s, and waits `duration` from then on its own clock. The holder leads only until
s + `renew_deadline`, which is earlier by the margin `duration - renew_deadline`. The clocks need not agree; their rates
must not differ by more than duration / renew_deadline. Hence:

- `held` compares the clock with s: it turns false in time even while the event loop, the process or the API server is
  frozen. Ask it right before every write.
- A write sent while the lease is held may still be under way: give it at most `time_left` seconds. Two cases cannot be
  bounded here: a process that stops between the question and the write, and a request stuck in the network. The
  preconditions of every write cover them.
- The Lease itself is written at its resourceVersion only, so one of two candidates loses.
- Every attempt has its own timeout, so one slow answer does not cost the leadership.
- The work is cancelled when the lease is lost. The lease is released after the work has stopped, for any reason.

`lease_record.Rivals` has the rules for taking over, a deleted Lease among them.
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
from mpijob_elastic.kube.lease_record import LeaseObject, LeaseSpec, Rivals, claim, release, unclaimed
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import LEASES
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

log = logging.getLogger(__name__)

_SHORTEST_SLEEP = 0.01

_decode = msgspec.json.Decoder(LeaseObject).decode


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """Seconds. `duration`, `renew_deadline` and `retry` are client-go's LeaseDuration, RenewDeadline, RetryPeriod.

    `attempt` bounds one request for the Lease; `look` is the interval at which a waiting candidate reads it.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    attempt: float = 3.0
    look: float = 0.8

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > 1.2 * self.retry:
            raise ValueError(
                f"lease times: duration {self.duration} must be above renew_deadline {self.renew_deadline}, "
                f"and that above 1.2 times retry {self.retry}; defaults are 15, 10, 2"
            )


def awake_or_not() -> float:
    """Return seconds on a clock that never steps and, on Linux, counts the time of a suspension.

    `time.monotonic` stands still in a suspension, so a holder that wakes up would believe its lease is still young.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(kw_only=True)
class Lease:
    """A candidate. `identity` must be new for each process, for example host name and a random id."""

    client: ApiWriter
    namespace: str
    name: str
    identity: str
    random: Random
    times: LeaseTimes = LeaseTimes()
    clock: Callable[[], float] = awake_or_not
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    # When the write that made us holder was sent; None while another may hold.
    _granted: float | None = field(default=None, init=False)
    # The Lease as last read or written; None where it is missing.
    _found: LeaseObject | None = field(default=None, init=False)
    # True if `_found` is our last write, so that we can write again without a read.
    _fresh: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Prepare what follows from the settings."""
        self._path = LEASES.path(self.namespace, self.name)
        self._rivals = Rivals(identity=self.identity, seconds=self.times.duration)

    def held(self) -> bool:
        """Return True if this process leads now."""
        return self._granted is not None and self.clock() < self._granted + self.times.renew_deadline

    def time_left(self) -> float:
        """Return the seconds until another candidate may lead, the limit for a write sent now; 0 if not held."""
        granted = self._granted
        return max(0.0, granted + self.times.duration - self.clock()) if granted is not None and self.held() else 0.0

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, run `lead` while it is held, cancel `lead` when it is lost, and repeat.

        Ends when `lead` ends, and raises what it raised. When cancelled, stops `lead`, waits for its end, releases.
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
        """Try once to become or stay the holder; return the seconds to wait before the next attempt."""
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
            # Only created here, and claimed later: a creation cannot depend on a former read.
            await self._write(None, unclaimed(now=self.now()))
            return 0.0
        free_at = self._rivals.free_at(found, now)
        if found.spec.holder_identity not in (None, "", self.identity):
            self._granted = None
        if now < free_at and not self.held():
            self._fresh = False
            return min(self._pause(self.times.look), free_at - now)
        sent = self.clock()
        spec = claim(found.spec, identity=self.identity, seconds=self.times.duration, now=self.now())
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
            log.warning("Lease %s/%s not released, so it must run out: %s", self.namespace, self.name, error)
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
            body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
            path = LEASES.path(self.namespace)
            answer = await self.client.create_object(path, body=body, limits=self._limits())
        self._found = _decode(answer)
        self._fresh = True

    def _limits(self) -> Timeouts:
        return Timeouts(attempt=min(self.times.attempt, self._until_deadline()), throttled=0)

    def _until_deadline(self) -> float:
        granted = self._granted
        return granted + self.times.renew_deadline - self.clock() if granted is not None and self.held() else math.inf

    def _pause(self, seconds: float) -> float:
        return seconds * self.random.uniform(0.75, 1.25)


async def _stop(task: asyncio.Future[None]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception():
            log.error("the leader's work failed while it was being stopped", exc_info=task.exception())

"""The one way to write on behalf of a job, open only while this process surely leads."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import ExecResult, exec_in_pod
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics

T = TypeVar("T")

# Seconds that the API server may spend on a write. Mostly it takes milliseconds. But a foreign
# admission webhook that hangs and is to be ignored takes 10 s, the default of its timeoutSeconds,
# and only then the write takes place.
LONGEST_WRITE = 12.0
# Seconds that we wait longer, so that the API server itself says that it has given up.
ON_THE_WAY = 1.0
# Seconds. No admission webhook takes part in an exec as a rule, and the command may hang.
LONGEST_EXEC = 5.0
# The name under which the API server remembers our fields
# (https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers).
MANAGED = {"fieldManager": "mpijob-elastic"}


class NotLeader(Exception):
    """The lease is not held: nothing was sent."""


class Altered(errors.KubeError):
    """Another admission plugin changes our writes."""


def limits_of(left: float) -> Timeouts:
    """Return the limits of a write while no other process may lead for `left` seconds.

    The API server gives up before we do, and before another process may lead, so no write takes
    place after that. A write never waits after a 429, because that could outlast the lease; the
    queue tries again instead.
    """
    attempt = min(LONGEST_WRITE + ON_THE_WAY, left)
    server = max(attempt - ON_THE_WAY, attempt / 2)
    return Timeouts(attempt=attempt, throttled=0.0, server=server)


async def for_each(
    things: deque[T],
    write: Callable[[T], Awaitable[None]],
    *,
    at_once: int = 1,
    until: float = math.inf,
) -> list[errors.KubeError]:
    """Write each of `things`, from the front, until the loop's time `until`; return the refusals.

    Raises at once an error that means that the server is away, or that we may not write.
    """
    refused: list[errors.KubeError] = []

    async def write_in_turn() -> None:
        while things and asyncio.get_running_loop().time() < until:
            try:
                await write(things.popleft())
            except errors.KubeError as error:
                if errors.is_away(error):
                    raise
                refused.append(error)

    # Await each write even if another fails, so that no write is under way at the next look at the
    # job.
    outcomes = await asyncio.gather(
        *(write_in_turn() for _ in range(at_once)), return_exceptions=True
    )
    for failure in filter(None, outcomes):
        raise failure
    return refused


@dataclass(frozen=True, eq=False)
class LeaderWriter:
    """Sends writes while the lease is held."""

    client: ApiWriter
    _: KW_ONLY
    #: Returns the seconds until another process may lead; 0 if the lease is not held.
    time_left: Callable[[], float]
    metrics: Metrics

    async def create_object(self, resource: Resource, *, namespace: str, body: object) -> bytes:
        """Create an object. Raises NotLeader, and the errors of `ApiWriter`."""
        with self._sending("POST", resource.plural, f"{namespace}/") as limits:
            return await self.client.create_object(
                resource.path(namespace), query=MANAGED, body=body, limits=limits
            )

    async def patch_object(
        self,
        resource: Resource,
        *,
        namespace: str,
        name: str,
        subresource: str | None = None,
        body: Sequence[object] | Mapping[str, object],
    ) -> bytes:
        """Change an object by a merge patch (a mapping) or a JSON patch.

        Raises NotLeader, and the errors of `ApiWriter`.
        """
        kind = "/".join(filter(None, (resource.plural, subresource)))
        with self._sending("PATCH", kind, f"{namespace}/{name}") as limits:
            return await self.client.patch_object(
                resource.path(namespace, name, subresource),
                query=MANAGED,
                body=body,
                content_type=MERGE_PATCH if isinstance(body, Mapping) else JSON_PATCH,
                limits=limits,
            )

    async def delete_object(
        self,
        resource: Resource,
        *,
        namespace: str,
        ref: Identity,
        at_version: bool,
        grace: int | None = None,
    ) -> bytes:
        """Delete an object if it still has the uid of `ref`, and its version if `at_version`.

        grace: seconds that the object gets to end; None for its own grace period.

        Raises NotLeader, and the errors of `ApiWriter`.
        """
        with self._sending("DELETE", resource.plural, f"{namespace}/{ref.name}") as limits:
            return await self.client.delete_object(
                resource.path(namespace, ref.name),
                uid=ref.uid,
                resource_version=ref.resource_version if at_version else None,
                options=None if grace is None else {"gracePeriodSeconds": grace},
                limits=limits,
            )

    async def execute(
        self, namespace: str, pod: str, *, container: str, command: list[str]
    ) -> ExecResult:
        """Run a command that changes something. Raises NotLeader, or what `exec_in_pod` raises."""
        with self._sending("CONNECT", "pods/exec", f"{namespace}/{pod}") as limits:
            return await exec_in_pod(
                self.client,
                namespace,
                pod,
                container=container,
                command=command,
                timeout=min(LONGEST_EXEC, limits.attempt),
            )

    @contextmanager
    def _sending(self, verb: str, kind: str, name: str) -> Iterator[Timeouts]:
        """Yield the limits of a write, and count its outcome. Raises NotLeader."""
        left = self.time_left()
        if left <= 0:
            raise NotLeader(f"{verb} {kind} {name} not sent: the lease is not held")
        outcome, limits = "ok", limits_of(left)
        try:
            yield limits
        except errors.TooSlow as error:
            outcome = type(error).__name__
            raise _explained(error, kind, limits) from error
        except errors.ApiError as error:
            # The status and not the reason: an admission webhook may give any text as its reason,
            # and each text would make a metric series for ever.
            outcome = str(error.status) if type(error) is errors.ApiError else type(error).__name__
            raise
        except errors.Unreachable:
            outcome = "unreachable"
            raise
        finally:
            self.metrics.writes.labels(verb, kind, outcome).inc()


def _explained(error: errors.TooSlow, kind: str, limits: Timeouts) -> errors.TooSlow:
    """Return the error with a text that says what to look at."""
    return errors.TooSlow(
        status=error.status,
        reason=error.reason,
        message=(
            f"the API server did not finish this write within {limits.server:.0f} s. Most likely "
            f"an admission webhook of another program, which is called for writes of {kind}, does "
            "not answer. `kubectl get mutatingwebhookconfigurations,"
            "validatingwebhookconfigurations` lists the webhooks"
        ),
    )

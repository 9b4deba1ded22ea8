"""The door that every write goes through: only the leader passes, and only for as long as it surely leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import JSON, Client
from mpijob_elastic.kube.exec import ExecResult, exec_in_pod
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.telemetry.metrics import Metrics

# One write answers within milliseconds; one that takes longer is better tried again from a fresh look.
WRITE_TIMEOUT = 5.0
# The name under which the API server remembers our fields
# (https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers).
FIELD_MANAGER = "mpijob-elastic"


class NotLeader(Exception):
    """The lease is not held (any more): nothing was sent."""


class Gate:
    """Sends writes. `time_left` gives the seconds until another may lead, 0 where the lease is not held."""

    def __init__(self, client: Client, *, time_left: Callable[[], float], metrics: Metrics) -> None:
        self._client = client
        self._time_left = time_left
        self._metrics = metrics

    async def write(
        self,
        method: str,
        resource: Resource,
        *,
        namespace: str,
        name: str | None,
        subresource: str | None = None,
        body: object,
        content_type: str = JSON,
    ) -> bytes:
        """The answer to one write. Raises NotLeader, or what `Client.request` raises."""
        left = self._left(f"{method} {resource.plural} {namespace}/{name}")
        query: Mapping[str, str] = {} if method == "DELETE" else {"fieldManager": FIELD_MANAGER}
        with self._counted(method, "/".join(filter(None, (resource.plural, subresource)))):
            return await self._client.request(
                method,
                resource.path(namespace, name, subresource),
                query=query,
                body=body,
                content_type=content_type,
                timeout=min(WRITE_TIMEOUT, left),
                patience=0,  # a wait here could outlast the lease; the queue tries again instead
            )

    async def execute(self, namespace: str, pod: str, *, container: str, command: list[str]) -> ExecResult:
        """Run a command that changes something. Raises NotLeader, or what `exec_in_pod` raises."""
        left = self._left(f"exec in {namespace}/{pod}")
        with self._counted("CONNECT", "pods/exec"):
            return await exec_in_pod(
                self._client, namespace, pod, container=container, command=command, timeout=min(WRITE_TIMEOUT, left)
            )

    def _left(self, what: str) -> float:
        left = self._time_left()
        if left <= 0:
            raise NotLeader(f"{what} not sent: the lease is not held")
        return left

    @contextmanager
    def _counted(self, verb: str, resource: str) -> Iterator[None]:
        outcome = "ok"
        try:
            yield
        except errors.ApiError as error:
            outcome = error.reason or str(error.status)
            raise
        except errors.Unreachable:
            outcome = "unreachable"
            raise
        finally:
            self._metrics.wrote(verb, resource, outcome)

"""A job whose launcher writes a log, on a node that keeps it as a kubelet does; for clients without sockets.

https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/kubelet/kuberuntime/kuberuntime_logs.go
and pkg/kubelet/kubelet_pods.go (validateContainerLogStatus).
"""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mpijob_elastic.kube import errors
from mpijob_elastic.model.json_parts import seconds
from tests.doubles.api import refused
from tests.doubles.direct import DirectClient, Sent

Object = dict[str, Any]
EPOCH = 1_767_225_600.0
JOB, LAUNCHER = "/mpijobs/train", "/pods/train-launcher"


@dataclass
class Container:
    """A container of the launcher: its lines as the kubelet sends them, what follows the last, and whether it ended."""

    lines: list[tuple[float, bytes]] = field(default_factory=list)
    rest: bytes = b""
    ended: bool = False


class Launcher:
    """See the module. away: no request is answered. cut: streams break, or end as if all was said (`ends`).

    refused: raised by requests for logs. pending: the pod is there and its container has not
    started. workers: the size of the job; None for a job that does not say it.
    """

    def __init__(self) -> None:
        self.pod = 0
        self.containers: list[Container] = [Container()]
        self.finished = self.away = self.gone = self.pending = self.deleted = False
        self.phase = "Running"
        self.workers: int | None = None
        self.refused: errors.ApiError | None = None
        self.queries: list[Mapping[str, str]] = []
        self._cuts = 0
        self._clean = False
        self._news = asyncio.Event()
        self.client = _Client(self)

    def write(self, text: str, *, late: float = 0.0) -> bytes:
        """Write a line, which was stamped so many seconds ago, because another stream wrote meanwhile."""
        at = self.now() - late
        stamp = (
            datetime.fromtimestamp(at, UTC)
            .isoformat(timespec="microseconds")
            .replace("+00:00", "123Z")
        )
        self.containers[-1].lines.append((at, f"{stamp} {text}".encode()))
        self._tell()
        return text.encode()

    def write_rest(self, text: str) -> None:
        """Write what has no end of line."""
        stamp = (
            datetime.fromtimestamp(self.now(), UTC)
            .isoformat(timespec="microseconds")
            .replace("+00:00", "Z")
        )
        self.containers[-1].rest = f"{stamp} {text}".encode()

    def restart(self) -> None:
        """End the container, and begin the next."""
        self.containers[-1].ended = True
        self.containers.append(Container())
        self._tell()

    def replace(self) -> None:
        """Begin another pod; the log of the former is gone."""
        self.pod += 1
        self.containers[-1].ended = True
        self.containers = [Container()]
        self._tell()

    def cut(self, *, ends: bool = False) -> None:
        """Break every stream, or end it well."""
        self._cuts, self._clean = self._cuts + 1, ends
        self._tell()

    def finish(self) -> None:
        """Let the container end, and the job."""
        self.containers[-1].ended = self.finished = True
        self._tell()

    def now(self) -> float:
        """Return the time of the node."""
        return EPOCH + asyncio.get_running_loop().time()

    def show(self, path: str) -> Object:
        """Answer a request for the job or the pod."""
        if path.endswith(JOB) and not self.deleted:
            kinds = ["Created", "Running", *(["Succeeded"] if self.finished else [])]
            conditions = [{"type": kind, "status": "True"} for kind in kinds]
            job: Object = {
                "metadata": {"name": "train", "namespace": "n", "uid": "j"},
                "status": {"conditions": conditions},
            }
            if self.workers is not None:
                job["spec"] = {"mpiReplicaSpecs": {"Worker": {"replicas": self.workers}}}
            return job
        if path.endswith(LAUNCHER) and not self.gone:
            return self._pod()
        if path.endswith("/mpijobs"):
            return {"items": [], "metadata": {}}
        raise refused(404, "NotFound", path)

    def _pod(self) -> Object:
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "name": "train",
            "uid": "j",
            "controller": True,
        }
        state: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        if self.pending:
            state = {"waiting": {"reason": "ContainerCreating"}}
        elif self.containers[-1].ended:
            state = {"terminated": {"exitCode": 0}}
        status = {"name": "main", "restartCount": len(self.containers) - 1, "state": state}
        metadata: Object = {
            "name": "train-launcher",
            "namespace": "n",
            "uid": f"p{self.pod}",
            "ownerReferences": [owner],
        }
        metadata["labels"] = {"mpi-job-role": "launcher"}
        spec = {"containers": [{"name": "main"}]}
        phase = "Pending" if self.pending else self.phase
        return {
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": phase, "containerStatuses": [status]},
        }

    async def read(
        self, query: Mapping[str, str], ends: list[bytes] | None
    ) -> AsyncGenerator[bytes]:
        """Give the lines that a request asks for."""
        self.queries.append(query)
        if self.refused:
            raise self.refused
        if self.pending or ("previous" in query and len(self.containers) < 2):
            raise refused(
                400, "BadRequest", "previous terminated container not found, or waiting to start"
            )
        container, cuts = self.containers[-2 if "previous" in query else -1], self._cuts
        back = math.floor(self.now()) - int(query.get("sinceSeconds", 10**9))
        since = seconds(query.get("sinceTime")) or back
        read = max(0, len(container.lines) - int(query.get("tailLines", len(container.lines))))
        while True:
            news = self._news
            for at, line in container.lines[read:]:
                if at >= since:
                    yield line
            read = len(container.lines)
            if self._was_cut(cuts):
                return
            if container.ended or "follow" not in query:
                break
            await news.wait()
        if ends is not None and container.rest:
            ends.append(container.rest)

    def _was_cut(self, cuts: int) -> bool:
        if cuts != self._cuts and not self._clean:
            raise errors.Unreachable("reset")
        return cuts != self._cuts

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _Client(DirectClient):
    def __init__(self, launcher: Launcher) -> None:
        super().__init__(self._show)
        self._launcher = launcher

    async def _show(self, sent: Sent) -> object:
        if self._launcher.away:
            raise errors.Unreachable("GET https://api:6443: refused")
        return self._launcher.show(sent.path)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        ends: list[bytes] | None = None,
        **_: float,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        assert path == "/api/v1/namespaces/n/pods/train-launcher/log"
        assert query["container"] == "main"
        if self._launcher.away:
            raise errors.Unreachable("GET https://api:6443: refused")
        lines = self._launcher.read(query, ends)
        try:
            yield lines
        finally:
            await lines.aclose()

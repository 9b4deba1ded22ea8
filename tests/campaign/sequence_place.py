"""Random sequences: a namespace with a controller of its own, in which sequences are played one after the other.

The controller is in this process, so that a step can move its clock and end it as a node that fails does: its
connections are cut first, so it neither finishes a write nor releases its Lease.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mpijob_elastic.controller.process import Controller
from mpijob_elastic.controller.settings import Settings
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.kube.writer import ApiWriter

AGENT = "mpijob-elastic-campaign"
TIMES = LeaseTimes(duration=8.0, renew_deadline=6.0, retry=3.0, attempt=2.0, look=1.0)


@dataclass(kw_only=True)
class Place:
    """A namespace, the controller of its own, and what was done to the present job.

    ahead: seconds by which the controller's clock is ahead. edits: (kind, name, resourceVersion) of foreign edits;
    deleted: uids of pods that users deleted.
    """

    namespace: str
    client: ApiWriter
    kubeconfig: Path
    ahead: float = 0.0
    edits: set[tuple[str, str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _connection: AsyncExitStack = field(default_factory=AsyncExitStack)
    _task: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def lead(self) -> None:
        """Start a controller."""
        self._stop = asyncio.Event()
        settings = Settings(
            identity=secrets.token_hex(4),
            namespace=self.namespace,
            lease_namespace=self.namespace,
            health_host="127.0.0.1",
            health_port=0,
            lease_times=TIMES,
        )
        connecting = await connect(user_agent=AGENT, kubeconfig=self.kubeconfig)
        client = await self._connection.enter_async_context(connecting)
        controller = Controller(client, settings, now=lambda: time.time() + self.ahead)
        self._task = asyncio.create_task(controller.run(self._stop))

    async def kill(self) -> None:
        """End it as a node that fails does."""
        if self._task:
            await self._connection.aclose()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def end(self) -> None:
        """End it cleanly."""
        self._stop.set()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._connection.aclose()

    def failed(self) -> str:
        """Return why the controller ended though nobody ended it, "" if it works."""
        is_over = self._task is not None and self._task.done() and not self._task.cancelled()
        return f"the controller ended: {self._task.exception()!r}" if is_over and self._task else ""


@asynccontextmanager
async def placed(client: ApiWriter, kubeconfig: Path, namespace: str) -> AsyncIterator[Place]:
    """Yield a place whose controller works; its namespace exists."""
    place = Place(namespace=namespace, client=client, kubeconfig=kubeconfig)
    await place.lead()
    try:
        yield place
    finally:
        await place.end()

"""A Service, as the webhook sees it: one address, new connections to ready replicas only, open ones left alone."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

# How often a replica is asked whether it is ready: as slow as endpoints follow it here.
PROBE_EVERY = 0.2


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A replica: where it serves, and where it says whether it is ready."""

    port: int
    health: str


class Service:
    """Forwards each connection to a backend that was ready at the last probe.

    `backends` may change at any time.

    opened: the number of connections so far. latency: seconds by which each piece of an answer is
    late.
    """

    def __init__(self) -> None:
        self.backends: list[Backend] = []
        self.opened = 0
        self.latency = 0.0
        self._ready: frozenset[Backend] = frozenset()
        self._open: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Listen on that port of 127.0.0.1 as long as the context lasts."""
        server = await asyncio.start_server(self._forward, "127.0.0.1", port)
        probing = asyncio.create_task(self._probe())
        try:
            yield
        finally:
            server.close()
            for task in (probing, *self._open):
                task.cancel()
            await asyncio.gather(probing, *self._open, return_exceptions=True)

    async def until_ready(self, *backends: Backend) -> None:
        """Wait until connections go to exactly these."""
        while self._ready != set(backends):
            await asyncio.sleep(0.01)

    async def _probe(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                found = [
                    backend for backend in self.backends if await _says_ready(session, backend)
                ]
                self._ready = frozenset(found)
                await asyncio.sleep(PROBE_EVERY)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        self.opened += 1
        # asyncio before 3.12 logs a task that ends cancelled as a fault; this is the end of the
        # task.
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            if self._ready:
                chosen = random.choice([*self._ready])
                inner, outer = await asyncio.open_connection("127.0.0.1", chosen.port)
                with contextlib.closing(outer):
                    await _first(_copy(reader, outer), _copy(inner, writer, late=self.latency))


async def _says_ready(session: aiohttp.ClientSession, backend: Backend) -> bool:
    try:
        async with session.get(f"{backend.health}/readyz") as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def _copy(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, *, late: float = 0.0
) -> None:
    while data := await source.read(2**16):
        await asyncio.sleep(late)
        target.write(data)
        await target.drain()


async def _first(*ways: Coroutine[None, None, None]) -> None:
    """Run both ways until either ends: then the connection is over."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""A port that answers HTTP, with bounds on the cost of a connection, and on the connections of an address."""

import asyncio
import ssl
import time
from asyncio import sslproto
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from webhook.settings import Limits

# Seconds to read and discard the rest of a refused body, so that the caller sees the answer and no reset.
_LINGERING = 2.0
_END_OF_HEAD = b"\r\n\r\n"
# Bytes of a TLS record. With the 256 KiB that asyncio takes for each connection, three pods could exhaust the memory.
sslproto.SSLProtocol.max_size = 16 * 2**10


@asynccontextmanager
async def listening(
    application: web.Application,
    *,
    host: str | None,
    port: int,
    limits: Limits,
    finish_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve `application` during the context; yields the port, a free port if `port` is 0.

    The end closes idle connections and gives requests in flight `finish_seconds`. Raises OSError if the port is taken.
    """
    runner = web.AppRunner(
        application,
        access_log=None,
        # Compressed bodies are not accepted: nothing may grow after its size was checked.
        auto_decompress=False,
        keepalive_timeout=limits.idle_seconds,
        lingering_time=_LINGERING,
        shutdown_timeout=finish_seconds,
    )
    await runner.setup()
    try:
        serve = runner.server
        assert serve is not None
        peers = _Peers(limits)
        handshake = limits.read_seconds if tls else None
        listener = await asyncio.get_running_loop().create_server(
            lambda: _Connection(serve(), peers), host, port, ssl=tls, backlog=1024, ssl_handshake_timeout=handshake
        )
        try:
            yield int(listener.sockets[0].getsockname()[1])
        finally:
            listener.close()
    finally:
        await runner.cleanup()


@dataclass
class _Peers:
    """The open connections, by address."""

    limits: Limits
    open: defaultdict[str, set["_Connection"]] = field(default_factory=lambda: defaultdict(set))

    def add(self, peer: str, new: "_Connection") -> None:
        mine, everyone = self.open[peer], self.open.values()
        crowded = len(mine) >= self.limits.connections
        if crowded or sum(map(len, everyone)) >= self.limits.all_connections:
            crowd = mine if crowded else max(everyone, key=len)
            min(crowd, key=lambda connection: connection.heard).drop()
        self.open[peer].add(new)

    def remove(self, peer: str, gone: "_Connection") -> None:
        self.open[peer].discard(gone)
        if not self.open[peer]:
            del self.open[peer]


class _Connection(asyncio.Protocol):
    """A connection of aiohttp's, with the bounds that aiohttp lacks; `heard` is when its last byte came."""

    def __init__(self, inner: asyncio.Protocol, peers: _Peers) -> None:
        self.heard = time.monotonic()
        self._inner = inner
        self._peers = peers
        self._peer = ""
        self._tail: bytes | None = b""  # of the first request's head, None once that is complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peer = (transport.get_extra_info("peername") or ("",))[0]
        self._peers.add(self._peer, self)
        self._waiting = self._drop_after(self._peers.limits.idle_seconds)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.heard = time.monotonic()
        if self._tail is not None:
            if not self._tail:
                self._waiting.cancel()
                self._waiting = self._drop_after(self._peers.limits.read_seconds)
            head = self._tail + data
            self._tail = None if _END_OF_HEAD in head else head[-len(_END_OF_HEAD) :]
            if self._tail is None:
                self._waiting.cancel()
        self._inner.data_received(data)

    def _drop_after(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self.drop)

    def drop(self) -> None:
        """End the connection at once."""
        self._peers.remove(self._peer, self)
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.cancel()
        self._peers.remove(self._peer, self)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

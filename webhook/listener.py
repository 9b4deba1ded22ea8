"""A port that answers HTTP, with bounds on what a caller may cost.

The bounds are on connections, and on bodies that are being read.
"""

import asyncio
import ssl
import time
from asyncio import sslproto
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from mpijob_elastic.telemetry import ports

# Seconds to read and discard the rest of a refused body, so that the caller sees the answer and no
# reset.
_LINGERING = 2.0
_END_OF_HEAD = b"\r\n\r\n"
# Bytes of a TLS record. With the 256 KiB that asyncio takes for each connection, three pods could
# exhaust the memory.
sslproto.SSLProtocol.max_size = 16 * 2**10


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for callers."""

    #: The largest body. An UPDATE review holds two objects of up to 3 MiB
    #: (https://github.com/kubernetes-sigs/controller-runtime/blob/main/pkg/webhook/admission/http.go).
    request_bytes: int = 8 * 2**20
    #: The most bytes of all bodies that are being read.
    bodies_bytes: int = 32 * 2**20
    #: For a body, for a TLS handshake, and for a connection's first request head from its first
    #: byte. It is the longest timeoutSeconds of the webhook configurations: then the API server has
    #: given up. `?timeout=` may ask for less.
    read_seconds: float = 2.0
    #: How long a connection may stay without a request. It is above the 90 s after which the API
    #: server closes idle connections itself, because a connection that we close may just be in use.
    #: That goes for a connection without a first request too: Go opens more than it needs, and
    #: keeps them.
    idle_seconds: float = 120.0
    #: The most connections of an address. An API server sends at most 600 requests at once, by its
    #: own limits (--max-requests-inflight and --max-mutating-requests-inflight), of which few are
    #: for us. One more connection ends the quietest, so that an address shared with the API server
    #: (a proxy, a node) stays usable.
    connections: int = 256
    #: The most connections of all addresses: each takes some 50 KiB. One more ends the quietest of
    #: the address that has most.
    all_connections: int = 1024


@asynccontextmanager
async def listening(
    application: web.Application,
    *,
    host: str | None,
    port: int,
    limits: Limits,
    finish_seconds: float,
    tls: ssl.SSLContext | None = None,
    option: str = "--port",
) -> AsyncIterator[int]:
    """Serve `application` during the context; yields the port, a free port if `port` is 0.

    The end closes idle connections and gives requests in flight `finish_seconds`. option: chooses
    the port. Raises OSError that names the option if the port is taken.
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
        with ports.chosen_by(option, port):
            listener = await asyncio.get_running_loop().create_server(
                lambda: _Connection(serve(), peers),
                host,
                port,
                ssl=tls,
                backlog=1024,
                ssl_handshake_timeout=handshake,
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
    """A connection of aiohttp's, with the bounds that aiohttp lacks.

    `heard` is the time of its last byte.
    """

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


class Crowded(Exception):
    """A body was given up because its caller holds the most bytes."""


@dataclass(eq=False, kw_only=True)
class _Reading:
    peer: str
    limit: asyncio.Timeout
    held: int = 0


class Bodies:
    """The bodies that are being read, of at most `most` bytes together.

    So no caller can hold up the others. Any pod may call, and the address of the API server is not
    known. So nobody waits for a place, and a body that is announced but does not come costs
    nothing. When the bytes that have come are too many, the caller that holds the most gives up its
    largest body.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._readings: set[_Reading] = set()

    @contextmanager
    def reading(self, peer: str, limit: asyncio.Timeout) -> Iterator[Callable[[int], None]]:
        """Count a body while it is read; call the yielded function with the length of each part.

        Raises `Crowded` in place of the cancellation that the end of `limit`, the timeout around
        the context, brings.
        """
        mine = _Reading(peer=peer, limit=limit)
        self._readings.add(mine)

        def grew(length: int) -> None:
            mine.held += length
            self._make_room()

        try:
            yield grew
        except asyncio.CancelledError:
            if mine in self._readings:
                raise
            raise Crowded from None
        finally:
            self._readings.discard(mine)

    def _make_room(self) -> None:
        held: Counter[str] = Counter()
        for reading in self._readings:
            held[reading.peer] += reading.held
        if held.total() > self._most:
            greediest, _ = held.most_common(1)[0]
            victim = max(
                (one for one in self._readings if one.peer == greediest), key=lambda one: one.held
            )
            self._readings.discard(victim)
            if not victim.limit.expired():
                victim.limit.reschedule(0.0)

"""A proxy between a client and the API server that injects faults and remembers every request.

    async with FaultProxy(cluster.kubeconfig) as proxy:
        client = await connect(user_agent="test", kubeconfig=proxy.kubeconfig)
        with proxy.inject(Answer(status=429, retry_after=1), on=lists, times=2):
            ...
        with proxy.inject(Call(callback=kill, after=True), on=lambda request: request.write_number
        == 3):
            ...
        assert proxy.count(writes) == 3

It speaks plain HTTP to the client (`proxy.kubeconfig` says so and holds no credentials) and to the
API server whatever the given kubeconfig says, with its rights. A request once heard is forwarded
even if the client has given up meanwhile: so late writes can be made (`Delay`, `Freeze`). Watches
are cut into lines, each struck as it arrives and handed on in that order; exec's WebSockets are
handed through. Faults in force are looked up at every moment of a request, so one may strike a
stream that is already open.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web

from mpijob_elastic.kube.client import connect
from tests.faults.faults import Drop, Fault, Request, everything, writes
from tests.faults.kubeconfig import write_plain

# How often an idle stream looks whether its client is still there, in seconds.
_HEARTBEAT = 0.2
# Not handed on: they concern one connection, or the proxy has its own.
_HOP_BY_HOP = frozenset(
    {
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "authorization",
    }
)
_HANDSHAKE = "sec-websocket-"


@dataclass(kw_only=True)
class _Rule:
    fault: Fault
    on: Callable[[Request], bool]
    left: int | None
    struck: set[int] = field(default_factory=set)

    def strikes(self, request: Request) -> bool:
        if request.number in self.struck:
            return True
        if self.left == 0 or not self.on(request):
            return False
        self.struck.add(request.number)
        if self.left is not None:
            self.left -= 1
        return True


class FaultProxy:
    """See the module; an async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        self._upstream_kubeconfig = kubeconfig
        self.requests: list[Request] = []
        self._rules: list[_Rule] = []
        self._under_way: dict[asyncio.Transport, Request] = {}
        self._handlers: set[asyncio.Task[object]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(
                await connect(user_agent="fault-proxy", kubeconfig=self._upstream_kubeconfig)
            )
            connector = aiohttp.TCPConnector(ssl=self._client.tls, limit=0)
            self._session = await stack.enter_async_context(
                aiohttp.ClientSession(
                    connector=connector, timeout=aiohttp.ClientTimeout(total=None)
                )
            )
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.port = 0
            await self._listen()
            stack.push_async_callback(self._stop)
            self._stack = stack.pop_all()
        write_plain(self.kubeconfig, self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """Where it listens; the port stays the same until it is closed."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a client that goes through the proxy."""
        return self._folder / "kubeconfig"

    @contextmanager
    def inject(
        self, fault: Fault, *, on: Callable[[Request], bool] = everything, times: int | None = None
    ) -> Iterator[Fault]:
        """Have `fault` strike the requests that `on` chooses, the first `times` of them, while the block runs."""
        rule = _Rule(fault=fault, on=on, left=times)
        self._rules.append(rule)
        try:
            yield fault
        finally:
            self.withdraw(fault)

    def withdraw(self, fault: Fault) -> None:
        """End a fault before its block does."""
        self._rules = [rule for rule in self._rules if rule.fault is not fault]

    @asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """While the block runs, connections are refused; open ones are broken."""
        await self._stop()
        try:
            yield
        finally:
            await self._listen()

    def cut(self, on: Callable[[Request], bool] = everything) -> None:
        """Reset every connection that has such a request under way."""
        for transport, request in list(self._under_way.items()):
            if on(request):
                transport.abort()

    def under_way(self, on: Callable[[Request], bool] = everything) -> int:
        """Return the number of requests of this kind that are not over."""
        return sum(1 for request in self._under_way.values() if on(request))

    def count(self, on: Callable[[Request], bool] = everything) -> int:
        """Return the number of requests of this kind."""
        return sum(1 for request in self.requests if on(request))

    async def _listen(self) -> None:
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        self.cut()
        for handler in self._handlers:
            handler.cancel()
        await self._runner.cleanup()

    def _record(self, raw: web.Request) -> Request:
        request = Request(
            number=len(self.requests) + 1,
            write_number=None,
            method=raw.method,
            path=raw.path,
            query=dict(raw.query),
            at=asyncio.get_running_loop().time(),
        )
        if writes(request):
            request = replace(request, write_number=self.count(writes) + 1)
        self.requests.append(request)
        return request

    def _faults(self, request: Request) -> list[Fault]:
        return [rule.fault for rule in list(self._rules) if rule.strikes(request)]

    async def _serve(self, raw: web.Request) -> web.StreamResponse:
        transport = raw.transport
        assert isinstance(transport, asyncio.Transport)
        handler = asyncio.current_task()
        assert handler is not None
        self._under_way[transport] = request = self._record(raw)
        self._handlers.add(handler)
        try:
            return await self._answer(raw, request)
        except (Drop, aiohttp.ClientError):
            transport.abort()
            return web.Response()
        finally:
            self._under_way.pop(transport, None)
            self._handlers.discard(handler)

    async def _answer(self, raw: web.Request, request: Request) -> web.StreamResponse:
        sent = await raw.read()
        for fault in self._faults(request):
            if (answer := await fault.asked(request)) is not None:
                return answer
        headers = {
            name: value for name, value in raw.headers.items() if name.lower() not in _HOP_BY_HOP
        }
        headers |= {"Accept-Encoding": "identity"} | await self._client.credentials()
        url = self._client.host + raw.path_qs
        if raw.headers.get("Upgrade", "").lower() == "websocket":
            return await _bridge(raw, self._session, url, headers)
        async with self._session.request(
            raw.method, url, headers=headers, data=sent or None
        ) as upstream:
            if request.watch and upstream.status == 200:
                return await self._stream(raw, request, upstream)
            body = await upstream.read()
        for fault in self._faults(request):
            body = await fault.answered(request, body)
        return web.Response(status=upstream.status, body=body, headers=_answer_headers(upstream))

    async def _stream(
        self, raw: web.Request, request: Request, upstream: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=_answer_headers(upstream))
        await response.prepare(raw)
        arrived: asyncio.Queue[asyncio.Task[bytes | None] | None] = asyncio.Queue()
        kept: set[asyncio.Task[bytes | None]] = set()

        async def hand_on() -> None:
            while line := await arrived.get():
                if (text := await line) is not None:
                    await response.write(text + b"\n")

        def is_left() -> bool:
            return raw.transport is None or raw.transport.is_closing()

        handing_on = asyncio.create_task(hand_on())
        try:
            async for line in _lines(upstream, until=is_left):
                kept.add(struck := asyncio.create_task(self._struck(request, line)))
                struck.add_done_callback(kept.discard)
                arrived.put_nowait(struck)
            arrived.put_nowait(None)
            if not is_left():
                await handing_on
        finally:
            for task in (handing_on, *kept):
                task.cancel()
        return response

    async def _struck(self, request: Request, line: bytes) -> bytes | None:
        kept: bytes | None = line
        for fault in self._faults(request):
            kept = await fault.line(request, line) if kept is not None else None
        return kept


async def _lines(
    upstream: aiohttp.ClientResponse, *, until: Callable[[], bool]
) -> AsyncIterator[bytes]:
    pending = b""
    while not until():
        try:
            async with asyncio.timeout(_HEARTBEAT):
                chunk = await upstream.content.readany()
        except TimeoutError:
            continue
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield line


def _answer_headers(upstream: aiohttp.ClientResponse) -> dict[str, str]:
    kept = ("Content-Type", "Retry-After", "Warning")
    return {name: upstream.headers[name] for name in kept if name in upstream.headers}


async def _bridge(
    raw: web.Request, session: aiohttp.ClientSession, url: str, headers: dict[str, str]
) -> web.StreamResponse:
    """Open the same WebSocket at `url` and copy both ways until either side closes."""
    protocols = [name.strip() for name in raw.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    kept = {
        name: value
        for name, value in headers.items()
        if not name.lower().startswith((_HANDSHAKE, "upgrade"))
    }
    try:
        upstream = await session.ws_connect(url, protocols=protocols, headers=kept)
    except aiohttp.WSServerHandshakeError as error:
        return web.Response(status=error.status)
    client = web.WebSocketResponse(protocols=[upstream.protocol] if upstream.protocol else [])
    await client.prepare(raw)
    async with upstream:
        copies = [
            asyncio.ensure_future(_copy(upstream, client)),
            asyncio.ensure_future(_copy(client, upstream)),
        ]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
    await client.close()
    return client


async def _copy(
    source: aiohttp.ClientWebSocketResponse | web.WebSocketResponse,
    target: aiohttp.ClientWebSocketResponse | web.WebSocketResponse,
) -> None:
    async for message in source:
        if message.type is aiohttp.WSMsgType.BINARY:
            await target.send_bytes(message.data)

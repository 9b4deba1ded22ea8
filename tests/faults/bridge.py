"""Hands a WebSocket through, message by message."""

import asyncio

import aiohttp
from aiohttp import web

_HANDSHAKE = "sec-websocket-"


async def bridge(
    raw: web.Request, session: aiohttp.ClientSession, url: str, headers: dict[str, str]
) -> web.StreamResponse:
    """Open the same WebSocket at `url` and copy both ways until either side closes."""
    protocols = [name.strip() for name in raw.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    kept = {name: value for name, value in headers.items() if not name.lower().startswith((_HANDSHAKE, "upgrade"))}
    try:
        upstream = await session.ws_connect(url, protocols=protocols, headers=kept)
    except aiohttp.WSServerHandshakeError as error:
        return web.Response(status=error.status)
    client = web.WebSocketResponse(protocols=[upstream.protocol] if upstream.protocol else [])
    await client.prepare(raw)
    async with upstream:
        copies = [asyncio.ensure_future(_copy(upstream, client)), asyncio.ensure_future(_copy(client, upstream))]
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

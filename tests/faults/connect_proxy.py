"""An HTTP proxy that opens tunnels (CONNECT), as a company has one between its desks and its clusters.

It leads every tunnel to one address, whatever name was asked for, and remembers the names.
"""

import asyncio
from contextlib import suppress
from typing import Self


class ConnectProxy:
    """See the module; an async context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._copies: set[asyncio.Task[None]] = set()
        self.asked: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for copy in self._copies:
            copy.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, name, _ = head.split(" ", 2)
        if method != "CONNECT":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            writer.close()
            return
        self.asked.append(name)
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, target in ((reader, far_writer), (far_reader, writer)):
            copy = asyncio.create_task(_copy(source, target))
            self._copies.add(copy)
            copy.add_done_callback(self._copies.discard)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(2**16):
            target.write(data)
            await target.drain()
    target.close()

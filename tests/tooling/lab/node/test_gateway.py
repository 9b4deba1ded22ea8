"""The gateway passes bytes between two networks; here both are this machine's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.node import gateway

HERE = Path("/proc/self/ns/net")


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer when all has been said, so that an end must have been passed on."""
    writer.write(b"heard " + await reader.read())
    writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """Port of a server."""
    async with await asyncio.start_server(_echo, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


class Here(gateway.Network):
    """The network of this machine, which nobody needs to enter."""

    @contextmanager
    def _entered(self) -> Iterator[None]:
        yield


@pytest.fixture
async def gate(tmp_path: Path, echo: int) -> AsyncIterator[Path]:
    """Path of the socket of a gateway that takes CONNECT."""
    one = gateway.Gateway(Here(HERE), Here(HERE), echo)
    path = tmp_path / "egress"
    async with await asyncio.start_unix_server(one.from_api_server, path):
        yield path


async def _say(path: Path, *parts: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    for part in parts:
        writer.write(part)
        await writer.drain()
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_connection_is_passed_with_its_ends(gate: Path, echo: int) -> None:
    request = f"CONNECT localhost:{echo} HTTP/1.1\r\n\r\n".encode()
    head, _, body = (await _say(gate, request, b"some ", b"words")).partition(b"\r\n\r\n")
    assert head.split() == [b"HTTP/1.1", b"200", b"Connection", b"established"]
    assert body == b"heard some words"


async def test_what_cannot_be_reached_is_told(gate: Path) -> None:
    assert (await _say(gate, b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")

"""The controller process: what it holds."""

import asyncio
import ssl
import tracemalloc
from asyncio import sslproto

import pytest

from mpijob_elastic.controller.process import spare_memory


async def test_a_connection_takes_less_than_asyncio_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)  # put back at the end
    spare_memory()
    context = ssl.create_default_context()
    tracemalloc.start()
    try:
        _held = sslproto.SSLProtocol(asyncio.get_running_loop(), asyncio.Protocol(), context, asyncio.Future())
        assert tracemalloc.get_traced_memory()[0] < 100 * 2**10
    finally:
        tracemalloc.stop()

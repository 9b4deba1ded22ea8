"""The process from start to end, with certificates from a directory, so that it needs no cluster that answers."""

import asyncio
import json
import signal
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from lab.kubeconfig import Server, write_token_kubeconfig
from lab.ports import free_ports
from tests.product.webhook.certificates.material import authority, leaf
from tests.product.webhook.objects import body, launcher_pod
from webhook.listener import Limits
from webhook.server import WebhookSettings, serve

NOW = datetime.now(UTC)
CA = authority(now=NOW)
TRUSTING = ssl.create_default_context(cadata=CA.certificate_pem.decode())
HOSTS = frozenset({"127.0.0.1"})


@pytest.fixture
def settings(tmp_path: Path) -> WebhookSettings:
    pair = leaf(CA, now=NOW, hosts=HOSTS)
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    port, health_port, nobodys = free_ports(3)
    kubeconfig = tmp_path / "kubeconfig"
    server = Server(url=f"https://127.0.0.1:{nobodys}", ca=CA.certificate_pem)
    write_token_kubeconfig(kubeconfig, server, user="webhook", token="none", namespace="default")
    here = WebhookSettings(
        host="127.0.0.1", port=port, health_port=health_port, certificate_directory=tmp_path
    )
    patient = Limits(read_seconds=60.0)
    return replace(
        here, kubeconfig=kubeconfig, drain_seconds=60.0, finish_seconds=60.0, limits=patient
    )


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=TRUSTING)) as session:
        yield session


def test_a_connection_holds_a_record_of_tls_and_no_more() -> None:
    """A record has at most 16 KiB (RFC 8446, 5.1)."""
    assert sslproto.SSLProtocol.max_size == 16_384


async def said(client: aiohttp.ClientSession, settings: WebhookSettings, path: str) -> str:
    """What the health port says; nothing while there is none."""
    try:
        async with client.get(f"http://127.0.0.1:{settings.health_port}{path}") as response:
            return await response.text()
    except aiohttp.ClientConnectionError:
        return ""


async def ready(client: aiohttp.ClientSession, settings: WebhookSettings) -> None:
    while await said(client, settings, "/readyz") != "ok\n":
        await asyncio.sleep(0.01)


async def patched(client: aiohttp.ClientSession, settings: WebhookSettings) -> str | None:
    """The Connection header of an answer that patches a launcher."""
    async with client.post(
        f"https://127.0.0.1:{settings.port}/mutate", data=body(launcher_pod())
    ) as response:
        assert "patch" in json.loads(await response.read())["response"]
        return response.headers.get("Connection")


async def test_from_start_to_a_drained_end(
    settings: WebhookSettings, client: aiohttp.ClientSession
) -> None:
    serving = asyncio.create_task(serve(settings))
    await ready(client, settings)
    assert await patched(client, settings) is None

    signal.raise_signal(signal.SIGTERM)
    while await said(client, settings, "/readyz") == "ok\n":
        await asyncio.sleep(0.01)
    assert await said(client, settings, "/healthz") == "ok\n"
    assert [await patched(client, settings) for _ in range(3)] == ["close"] * 3
    assert not serving.done()

    signal.raise_signal(signal.SIGTERM)
    await serving
    with pytest.raises(aiohttp.ClientConnectionError):
        await patched(client, settings)


async def test_a_review_in_flight_at_the_end_is_answered(
    settings: WebhookSettings, client: aiohttp.ClientSession
) -> None:
    serving = asyncio.create_task(serve(replace(settings, drain_seconds=0.0)))
    await ready(client, settings)
    reader, writer = await asyncio.open_connection("127.0.0.1", settings.port, ssl=TRUSTING)
    sent = body(launcher_pod())
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    writer.write(head % len(sent))
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
    writer.write(sent[:10])

    signal.raise_signal(signal.SIGTERM)
    await asyncio.sleep(0.2)
    writer.write(sent[10:])
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200")
    assert [text in answer for text in (b"Connection: close", b'"patch"')] == [True, True]
    writer.close()
    await serving


async def test_a_port_that_is_taken_is_named(settings: WebhookSettings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings.port))
        taken.listen()
        with pytest.raises(OSError, match=str(settings.port)):
            await serve(settings)

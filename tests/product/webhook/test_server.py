"""The process from start to end, with certificates from a directory, so that it needs no cluster that answers."""

import asyncio
import json
import os
import signal
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import yaml

from lab.kubeconfig import Server, write_token_kubeconfig
from lab.ports import free_ports
from mpijob_elastic.kube.errors import Unconfigured
from tests.product.webhook.certificates.material import authority, leaf
from tests.product.webhook.objects import body, launcher_pod
from webhook.certificates.apart import RotationApart
from webhook.certificates.messages import Order
from webhook.listener import Limits
from webhook.server import WebhookSettings, running, serve

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


async def switched(settings: WebhookSettings, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Start a webhook, switch the context of its kubeconfig, and return the context for rotations."""
    orders = list[Order]()

    async def noted(self: RotationApart) -> None:
        orders.append(self.order)
        await asyncio.sleep(60)

    monkeypatch.setattr(RotationApart, "run", noted)
    assert settings.kubeconfig is not None
    async with running(settings):
        content = yaml.safe_load(settings.kubeconfig.read_text())
        settings.kubeconfig.write_text(yaml.safe_dump({**content, "current-context": "other"}))
        await asyncio.sleep(0)
    return orders[0].context


async def test_certificates_are_rotated_in_the_cluster_of_the_start(
    settings: WebhookSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.kubeconfig is not None
    current = yaml.safe_load(settings.kubeconfig.read_text())["current-context"]
    own = replace(settings, certificate_directory=None)
    assert await switched(own, monkeypatch) == current


@contextmanager
def piped(text: str) -> Iterator[Path]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as start:
        start.write(text)
    with os.fdopen(reading):
        yield Path(f"/dev/fd/{reading}")


async def test_a_kubeconfig_that_can_be_read_once_is_for_a_webhook_that_reads_it_once(
    settings: WebhookSettings,
) -> None:
    assert settings.kubeconfig is not None
    text = settings.kubeconfig.read_text()
    with piped(text) as file:
        async with running(replace(settings, kubeconfig=file)):
            pass
    own = replace(settings, certificate_directory=None)
    with piped(text) as file, pytest.raises(Unconfigured, match="write it to a file"):
        async with running(replace(own, kubeconfig=file)):
            pass

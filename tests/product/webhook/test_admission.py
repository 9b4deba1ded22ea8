"""Reviews over HTTP: every body gets a clear answer in bounded time and memory."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import aiohttp
import pytest

from tests.faults.waiting import PATIENCE, eventually
from tests.product.webhook.answers import NOTHING
from tests.product.webhook.objects import Object, body, launcher_pod, mpi_job
from webhook.admission import Admission, AdmissionMetrics
from webhook.listener import Limits, listening

LIMITS = Limits(read_seconds=600.0)
HURRIED = Limits(read_seconds=0.3)
HEAD = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Server:
    client: aiohttp.ClientSession
    port: int
    metrics: AdmissionMetrics
    draining: asyncio.Event
    admission: Admission
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(
        self, sent: bytes = b"", *, address: str = "127.0.0.1"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection from this address, on which this is sent; it ends with the test."""
        found = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        self.writers.append(found[1])
        found[1].write(sent)
        return found

    async def in_flight(self, count: int) -> None:
        """Wait until so many reviews are."""
        await eventually(lambda: len(self.admission._answering) == count)

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    async def post(self, sent: bytes, path: str = "/mutate") -> tuple[int, str]:
        async with self.client.post(path, data=io.BytesIO(sent)) as response:
            return response.status, await response.text()

    async def reviewed(self, sent: bytes, path: str = "/mutate") -> Object:
        status, text = await self.post(sent, path)
        assert status == 200
        response: Object = json.loads(text)["response"]
        return response

    def counted(self, outcome: str, *, kind: str = "other", operation: str = "other") -> float:
        labels = f'{{kind="{kind}",operation="{operation}",outcome="{outcome}"}}'
        return metric(self.metrics, f"mpijob_elastic_webhook_reviews_total{labels}")


def metric(metrics: AdmissionMetrics, name: str) -> float:
    found = [line for line in metrics.render().decode().splitlines() if line.startswith(f"{name} ")]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


@asynccontextmanager
async def serving(limits: Limits = LIMITS) -> AsyncIterator[Server]:
    metrics, draining = AdmissionMetrics(), asyncio.Event()
    admission = Admission(limits=limits, metrics=metrics, draining=draining, context=NOTHING)
    listen = partial(listening, host="127.0.0.1", port=0, limits=limits, finish_seconds=1.0)
    async with (
        listen(admission.application()) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        server = Server(
            client=client, port=port, metrics=metrics, draining=draining, admission=admission
        )
        try:
            yield server
        finally:
            server.hang_up()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


async def test_each_path_has_its_handlers(server: Server) -> None:
    bad = body(mpi_job(annotations={"mpijob-elastic/enabled": "yes"}))
    paths = ("/mutate", "/default-queue", "/validate")
    assert ["patch" in await server.reviewed(body(launcher_pod()), path) for path in paths] == [
        True,
        False,
        False,
    ]
    assert [(await server.reviewed(bad, path))["allowed"] for path in paths] == [True, True, False]
    assert server.counted("patched", kind="Pod", operation="CREATE") == 1
    assert server.counted("rejected", kind="MPIJob", operation="CREATE") == 1
    assert metric(server.metrics, "mpijob_elastic_webhook_review_seconds_count") == 6


async def test_other_paths_and_methods_are_told_so(server: Server) -> None:
    assert (await server.post(b"", "/"))[0] == 404
    async with server.client.get("/mutate") as response:
        assert response.status == 405


async def test_malformed(server: Server) -> None:
    said = "the body is not an AdmissionReview: Expected `str`, got `int` - at `$.apiVersion`\n"
    assert await server.post(b'{"apiVersion": 1}') == (400, said)
    assert server.counted("malformed") == 1


def padded(size: int) -> bytes:
    """A review of that many bytes that is fine otherwise."""
    sent = body(launcher_pod(), padding="PADDING")
    return sent.replace(b"PADDING", b"x" * (size - len(sent) + len(b"PADDING")))


async def chunked(sent: bytes) -> AsyncIterator[bytes]:
    yield sent


async def test_seven_mebibytes_are_read_and_more_than_the_limit_is_refused_however_it_is_sent(
    server: Server,
) -> None:
    assert "patch" in await server.reviewed(padded(7 * 2**20))
    assert "patch" in await server.reviewed(padded(8 * 2**20))
    expected = (413, "the body is larger than 8388608 bytes\n")
    assert await server.post(padded(8 * 2**20 + 1)) == expected
    async with server.client.post("/mutate", data=chunked(padded(8 * 2**20 + 1))) as response:
        assert (response.status, await response.text()) == expected
    assert server.counted("too_large") == 2


async def test_a_compressed_body_is_not_blown_up(server: Server) -> None:
    async with server.client.post("/mutate", data=body(launcher_pod()), compress=True) as response:
        assert response.status in {200, 400}


async def raw(server: Server, sent: bytes) -> bytes:
    """The head and the first line of what comes back on a connection of its own."""
    reader, _ = await server.connect(sent)
    return await reader.readuntil(b"\r\n\r\n") + await reader.readline()


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(HURRIED) as server:
        answer = await raw(server, HEAD % 100 + b"{")
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"the body did not arrive within 0.3 s" in answer
        assert server.counted("timed_out") == 1


def asking(timeout: bytes) -> bytes:
    return (HEAD % 100).replace(b"/mutate", b"/mutate?timeout=" + timeout)


async def test_the_callers_timeout_shortens_the_wait_but_never_stretches_it() -> None:
    async with serving() as server:
        assert b"within 0.1 s" in await raw(server, asking(b"100ms"))
    async with serving(HURRIED) as server:
        for timeout in (b"10s", b"0s", b"soon", b""):
            assert b"within 0.3 s" in await raw(server, asking(timeout))


@pytest.mark.parametrize(
    "sent",
    [
        HEAD % -1,
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabc",
        b"\x16\x03\x01\x00\x00\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\n" + b"a: " + b"x" * 20_000 + b"\r\n\r\n",
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_broken_http_is_refused(server: Server, sent: bytes) -> None:
    assert (await raw(server, sent)).startswith(b"HTTP/1.")
    assert "patch" in await server.reviewed(body(launcher_pod()))


async def test_a_request_head_that_comes_too_slowly_ends_the_connection() -> None:
    async with serving(Limits(read_seconds=0.2)) as server:
        reader, _ = await server.connect(b"POST /mutate HTTP/1.1\r\nHost: x\r\n")
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        reader, writer = await server.connect()
        for _ in range(2):
            writer.write(HEAD % 1 + b"x")
            assert (await asyncio.wait_for(reader.readuntil(b"(byte 0)\n"), PATIENCE)).startswith(
                b"HTTP/1.1 400"
            )
            await asyncio.sleep(0.3)  # a caller that has asked may wait before it asks again


async def test_a_connection_without_a_request_is_kept_as_long_as_one_that_waits_for_the_next() -> (
    None
):
    """Go's clients open more connections than they use at once, and keep the rest for later."""
    async with serving(Limits(read_seconds=0.1)) as server:
        reader, writer = await server.connect()
        await asyncio.sleep(0.25)
        writer.write(HEAD % 0)
        assert (await asyncio.wait_for(reader.readline(), PATIENCE)).startswith(b"HTTP/1.1 400")
    async with serving(replace(LIMITS, idle_seconds=0.5)) as server:
        reader, _ = await server.connect()
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""


async def test_a_caller_that_hangs_up_leaves_nothing_behind(server: Server) -> None:
    await server.connect(HEAD % 100 + b"{")
    await server.in_flight(1)
    server.hang_up()
    await server.in_flight(0)
    assert "patch" in await server.reviewed(body(launcher_pod()))


@pytest.mark.parametrize("length", [100, 8 * 2**20])
async def test_bodies_that_do_not_come_hold_nobody_up(length: int) -> None:
    async with serving() as server:
        for _ in range(140):
            await server.connect(HEAD % length + b"{")
        await server.in_flight(140)
        assert "patch" in await asyncio.wait_for(server.reviewed(body(launcher_pod())), PATIENCE)
        assert "patch" in await asyncio.wait_for(server.reviewed(padded(2**20)), PATIENCE)


async def test_one_connection_too_many_ends_the_quietest_of_its_address() -> None:
    async with serving(replace(LIMITS, connections=2)) as server:
        quiet, keeps = await server.connect(), await server.connect(b"POST")
        elsewhere = await server.connect(address="127.0.0.2")
        await asyncio.sleep(0.05)
        assert "patch" in await server.reviewed(body(launcher_pod()))
        assert await asyncio.wait_for(quiet[0].read(), PATIENCE) == b""
        keeps[1].write((HEAD % 0).removeprefix(b"POST"))
        elsewhere[1].write(HEAD % 0)
        for reader, _ in (keeps, elsewhere):
            assert (await asyncio.wait_for(reader.readline(), PATIENCE)).startswith(b"HTTP/1.1 400")


async def test_with_too_many_connections_together_the_address_with_most_gives_one_up() -> None:
    async with serving(replace(LIMITS, all_connections=3)) as server:
        quiet, other, one = [await server.connect(address=f"127.0.0.{last}") for last in (2, 2, 3)]
        await asyncio.sleep(0.05)
        assert "patch" in await server.reviewed(body(launcher_pod()))
        assert await asyncio.wait_for(quiet[0].read(), PATIENCE) == b""
        for reader, writer in (other, one):
            writer.write(HEAD % 0)
            assert (await asyncio.wait_for(reader.readline(), PATIENCE)).startswith(b"HTTP/1.1 400")


async def test_the_caller_that_holds_the_most_bytes_gives_one_body_up() -> None:
    async with serving(replace(LIMITS, bodies_bytes=3 * 2**20)) as server:
        for _ in range(2):
            _, writer = await server.connect(
                HEAD % (2 * 2**20) + b" " * (3 * 2**19 - 2**18), address="127.0.0.2"
            )
            await writer.drain()
        await server.in_flight(2)
        assert "patch" in await asyncio.wait_for(server.reviewed(padded(2**20)), PATIENCE)
        await server.in_flight(1)
        assert server.counted("crowded") == 1


async def test_while_draining_every_answer_closes_its_connection(server: Server) -> None:
    async with server.client.post("/mutate", data=body(launcher_pod())) as response:
        assert response.headers.get("Connection") != "close"
    server.draining.set()
    for sent, status in ((body(launcher_pod()), 200), (b"nonsense", 400)):
        async with server.client.post("/mutate", data=sent) as response:
            assert (response.status, response.headers.get("Connection")) == (status, "close")

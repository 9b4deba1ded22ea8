"""The transport, through the proxy: what it retries, what it reports and as what."""

import asyncio
import json

import aiohttp
import pytest

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.reader import Timeouts, _lines
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.doubles.api import TinyApi, refused
from tests.faults.faults import Answer, Freeze, Reset, everything, writes
from tests.faults.proxy import FaultProxy

PODS = "/api/v1/namespaces/n/pods"


@pytest.mark.parametrize("retry_after", [0, None])
async def test_a_429_is_retried_for_writes_too(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, retry_after: int | None
) -> None:
    with proxy.inject(Answer(status=429, retry_after=retry_after), times=1):
        await client.create_object(PODS, body={"metadata": {"name": "a"}, "spec": {"x": 1}})
    first, second = proxy.requests
    assert second.at - first.at >= 1, "where nothing is said, and where 0 is, a second is waited"
    await client.patch_object(f"{PODS}/a", body={"spec": {"y": 2}}, content_type=MERGE_PATCH)
    assert json.loads(await client.get(f"{PODS}/a"))["spec"] == {"x": 1, "y": 2}
    await client.delete_object(f"{PODS}/a")
    assert api.objects == {}


async def test_patience_with_429s_is_limited(proxy: FaultProxy, client: ApiWriter) -> None:
    with proxy.inject(Answer(status=429, retry_after=2)), pytest.raises(errors.Throttled) as caught:
        await client.get(PODS, limits=Timeouts(throttled=1))
    assert caught.value.retry_after == 2
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.ApiError),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (503, "", errors.ApiError),
        (504, "Timeout", errors.TooSlow),
        (504, "", errors.ApiError),
        (500, "Timeout", errors.ApiError),
    ],
)
async def test_an_error_status_is_typed(
    proxy: FaultProxy, client: ApiWriter, status: int, reason: str, kind: type[errors.ApiError]
) -> None:
    with proxy.inject(Answer(status=status, reason=reason)), pytest.raises(kind) as caught:
        await client.get(PODS)
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (status, reason)


@pytest.mark.parametrize(
    ("seconds", "sent"), [(12.0, "12000ms"), (4.0004, "4000ms"), (0.0001, "1ms"), (None, None)]
)
async def test_the_server_is_told_when_to_give_up(
    proxy: FaultProxy, client: ApiWriter, seconds: float | None, sent: str | None
) -> None:
    """A timeout of 0 would mean none."""
    limits = Timeouts(server=seconds)
    await client.create_object(PODS, body={"metadata": {"name": "a"}}, limits=limits)
    await client.delete_object(f"{PODS}/a", query={"x": "y"}, limits=limits)
    assert [request.query.get("timeout") for request in proxy.requests] == [sent, sent]
    assert proxy.requests[1].query["x"] == "y"


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (errors.Unreachable("no answer"), True),
        (refused(504, ""), True),
        (refused(503, "ServiceUnavailable"), True),
        (refused(504, "Timeout"), False),
        (refused(500, "InternalError"), False),
        (refused(403, "Forbidden"), False),
    ],
)
def test_a_server_that_says_that_admission_is_slow_is_not_away(
    error: errors.KubeError, away: bool
) -> None:
    assert errors.is_away(error) is away


@pytest.mark.parametrize(
    ("error", "is_refusal"),
    [
        (refused(403, "Forbidden"), True),
        (refused(422, "Invalid"), True),
        (refused(404, "NotFound"), True),
        (refused(500, "InternalError"), True),
        (refused(504, "Timeout"), True),
        (refused(409, "AlreadyExists"), True),
        (refused(409, "Conflict"), False),
        (refused(503, "ServiceUnavailable"), False),
        (errors.Unreachable("no answer"), False),
    ],
)
def test_what_one_object_is_refused_says_nothing_of_others(
    error: errors.KubeError, is_refusal: bool
) -> None:
    assert errors.is_refusal(error) is is_refusal


async def test_a_lost_answer_is_unreachable_though_the_write_took_place(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    with (
        proxy.inject(Reset(after=True), on=writes),
        pytest.raises(errors.Unreachable, match=f"POST .*{PODS}"),
    ):
        await client.create_object(PODS, body={"metadata": {"name": "a"}})
    assert list(api.objects) == [f"{PODS}/a"]


async def test_a_cancellation_is_obeyed_though_the_request_times_out_at_the_same_moment(
    proxy: FaultProxy, client: ApiWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    with proxy.inject(Freeze(), on=everything):
        request = asyncio.create_task(client.get(PODS, limits=Timeouts(attempt=600)))
        while not proxy.requests:
            await asyncio.sleep(0.01)
        # As in a process that had no CPU for long: both timers are due when it looks again.
        loop.call_later(0, request.cancel)
        later = loop.time() + 3600
        monkeypatch.setattr(loop, "time", lambda: later)
        with pytest.raises(asyncio.CancelledError):
            await request


async def test_silence_and_refusal_are_unreachable(proxy: FaultProxy, client: ApiWriter) -> None:
    query = {"watch": "true", "resourceVersion": "100"}
    with proxy.inject(Freeze()), pytest.raises(errors.Unreachable):
        await client.get(PODS, limits=Timeouts(attempt=0.05))
    async with proxy.down():
        with pytest.raises(errors.Unreachable):
            await client.get(PODS)
    with pytest.raises(errors.Unreachable):
        async with client.stream(PODS, query=query, silence=0.01) as lines:
            [line async for line in lines]
    with proxy.inject(Freeze()), pytest.raises(errors.Unreachable):
        async with client.stream(PODS, query=query, silence=60, opening=0.05):
            pass


async def test_a_line_may_be_longer_than_any_buffer(api: TinyApi, client: ApiWriter) -> None:
    await api.create(PODS, "a", data="x" * 9_000_000)
    async with client.stream(
        PODS, query={"watch": "true", "resourceVersion": "100"}, silence=10
    ) as lines:
        assert len(await anext(lines)) > 9_000_000


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_lines_are_the_same_whatever_their_pieces(size: int) -> None:
    text = b"one\n\ntwo words\nthree\nunfinished"
    content = _Pieces([text[start : start + size] for start in range(0, len(text), size)])
    assert [line async for line in _lines(content, "here")] == [b"one", b"", b"two words", b"three"]


class _Pieces(aiohttp.StreamReader):
    """An answer that comes in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)

    async def readany(self) -> bytes:
        return next(self._pieces, b"")


async def test_the_password_of_a_proxy_is_given_to_it_and_not_shown() -> None:
    heads = list[bytes]()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        access = Access(host="https://api.example", proxy=url)
        assert "secret" not in repr(access)
        async with ApiWriter(access, user_agent="test") as client:
            with pytest.raises(errors.Unreachable, match="407") as caught:
                await client.get(PODS)
    [head] = heads
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head
    assert "secret" not in str(caught.value)

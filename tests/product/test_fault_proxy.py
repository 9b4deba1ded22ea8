"""The faults that other tests rely upon do what they say."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import Limits
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.doubles.shells import Shells, prints
from tests.faults.faults import (
    Call,
    Delay,
    Freeze,
    LoseEvents,
    Request,
    watches,
    writes,
)
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

PODS = "/api/v1/namespaces/n/pods"
WATCH = {"watch": "true", "resourceVersion": "100"}


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with TinyApi(bookmark_every=3600) as api:
        yield api


async def create(client: ApiWriter, name: str, *, seconds: float = 10) -> None:
    await client.create_object(PODS, body={"metadata": {"name": name}}, limits=Limits(attempt=seconds))


@pytest.mark.parametrize(("after", "done"), [(False, ["a"]), (True, ["a", "b"])])
async def test_a_client_can_be_killed_at_its_second_write_before_or_after_that_is_done(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, done: list[str], *, after: bool
) -> None:
    killed: list[Request] = []

    async def kill(request: Request) -> None:
        killed.append(request)

    with proxy.inject(Call(callback=kill, after=after), on=lambda request: request.write_number == 2):
        await create(client, "a")
        await client.get(f"{PODS}/a")
        with pytest.raises(errors.Unreachable):
            await create(client, "b")
    assert [request.number for request in killed] == [3]
    assert [path.rsplit("/", 1)[1] for path in api.objects] == done


async def test_a_write_that_its_sender_gave_up_still_arrives(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    with proxy.inject(Delay(seconds=0.2), on=writes):
        with pytest.raises(errors.Unreachable):
            await create(client, "late", seconds=0.05)
        assert not api.objects
        await eventually(lambda: api.objects)


async def test_a_frozen_stream_keeps_its_lines_and_hands_them_on_when_thawed(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    freeze = Freeze()
    async with client.stream(PODS, query=WATCH, silence=30) as lines:
        await api.create(PODS, "a")
        assert name(await anext(lines)) == "a"
        with proxy.inject(freeze, on=watches):
            await api.create(PODS, "b")
            await api.create(PODS, "c")
            reading = asyncio.ensure_future(anext(lines))
            await asyncio.sleep(0.05)
            assert not reading.done()
            freeze.thaw()
            assert name(await reading) == "b"
            assert name(await anext(lines)) == "c"


async def test_only_chosen_requests_are_cut(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    async with client.stream(PODS, query=WATCH, silence=30) as kept:
        async with client.stream("/api/v1/nodes", query=WATCH, silence=30) as cut:
            await eventually(lambda: proxy.under_way(watches) == 2)
            proxy.cut(lambda request: request.path.endswith("/nodes"))
            with pytest.raises(errors.Unreachable):
                await anext(cut)
        await eventually(lambda: proxy.under_way(watches) == 1)
        await api.create(PODS, "a")
        assert name(await anext(kept)) == "a"


async def test_an_event_is_lost_and_the_next_is_not(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    lose = LoseEvents(chosen=lambda line: line["object"]["metadata"]["name"] == "a")
    with proxy.inject(lose, on=watches):
        async with client.stream(PODS, query=WATCH, silence=30) as lines:
            await api.create(PODS, "a")
            await api.create(PODS, "b")
            assert name(await anext(lines)) == "b"


async def test_exec_goes_through(api: TinyApi, client: ApiWriter) -> None:
    shells = Shells(prints("hello"))
    shells.uids["none"] = None
    api.streams["/exec"] = shells.serve
    result = await exec_in_pod(client, "n", "p", container="c", command=["true"], timeout=30)
    assert (result.stdout, result.exit_code) == ("hello", 0)
    with pytest.raises(errors.NotFound):
        await exec_in_pod(client, "n", "none", container="c", command=["true"], timeout=30)


def name(line: bytes) -> str:
    return str(json.loads(line)["object"]["metadata"]["name"])

"""The watch cache against an API server, through everything that can go wrong between them."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from aiohttp import web

from mpijob_elastic.kube import meta
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import DEEP, TinyApi
from tests.faults.faults import (
    Answer,
    EventError,
    Fault,
    Freeze,
    LoseEvents,
    Request,
    StaleAnswers,
    lists,
    watches,
)
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.kube.watched import PATH, RETRY, TIMES, Item, fill, watching


class EndsAtOnce(Fault):
    """The server ends a stream before its first line."""

    async def asked(self, request: Request) -> web.Response:
        return web.Response()


async def test_the_first_list_is_read_page_by_page_and_then_the_watch_is_followed(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await fill(api, *"abcde")
    async with watching(client) as watched:
        assert watched.agrees_with(api)
        assert proxy.count(lists) == 3
        await api.update(PATH, "a", value=7)
        await api.delete(PATH, "b")
        await fill(api, "f")
        await eventually(lambda: watched.agrees_with(api))
        assert watched.get("a") == msgspec.convert(api.objects[f"{PATH}/a"], Item)
        assert [one and one.value for one in watched.changes[5]] == [0, 7]
        assert proxy.count(watches) == 1
        assert proxy.requests[-1].query["allowWatchBookmarks"] == "true"
        assert 300 <= int(proxy.requests[-1].query["timeoutSeconds"]) <= 600
        reached = api.revision
        await api.end_streams()
        await fill(api, "g")
        await eventually(lambda: watched.agrees_with(api))
        assert proxy.count(lists) == 3, "it goes on from the last version"
        assert int(proxy.requests[-1].query["resourceVersion"]) >= reached


@pytest.mark.parametrize(
    "fault", [EventError(status=410, reason="Expired"), Answer(status=410), Answer(status=400)]
)
async def test_a_version_that_is_too_old_makes_it_list_and_tell_of_what_is_gone(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, fault: Fault
) -> None:
    await fill(api, "a", "b")
    async with watching(client) as watched:
        freeze = Freeze()
        with proxy.inject(freeze, on=lists):
            with proxy.inject(
                LoseEvents(chosen=lambda line: line["type"] == "DELETED"), on=watches
            ):
                await api.delete(PATH, "a")
                await api.update(PATH, "b", value=1)
                await eventually(lambda: watched.last[1] and watched.last[1].value == 1)
            with proxy.inject(fault, on=watches, times=1):
                await api.end_streams()
                await eventually(lambda: proxy.count(lists) == 2)
            assert watched.get("a") is not None, "the old cache stays until the list is there"
            freeze.thaw()
            await eventually(lambda: watched.agrees_with(api))
        old, new = watched.last
        assert (old.metadata.name, new) == ("a", None)


@pytest.mark.parametrize("healthy", [TIMES.healthy, 0])
@pytest.mark.parametrize("on", [lists, watches])
async def test_retry_after_is_obeyed(
    proxy: FaultProxy, client: ApiWriter, on: Callable[[Request], bool], healthy: float
) -> None:
    with proxy.inject(Answer(status=429, retry_after=1), on=on, times=1):
        async with watching(client, replace(TIMES, healthy=healthy)):
            await eventually(lambda: proxy.count(on) == 2)
    first, second = [request.at for request in proxy.requests if on(request)]
    assert second - first >= 1


async def test_an_outage_is_asked_about_less_and_less_often(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    never_healthy = replace(TIMES, healthy=3600)
    async with watching(client, never_healthy) as watched:
        with proxy.inject(Answer(status=503), on=watches):
            before = proxy.count()
            await api.end_streams()
            await eventually(lambda: proxy.count() == before + 6)
        asked = [request.at for request in proxy.requests][before:]
        gaps = [later - earlier for earlier, later in pairwise(asked)]
        least = [RETRY.first / 2 * 2**n for n in range(3)] + [RETRY.longest / 2] * 2
        assert [gap >= bound for gap, bound in zip(gaps, least, strict=True)] == [True] * 5
        await fill(api, "a")
        await eventually(lambda: watched.agrees_with(api))
        assert proxy.count(lists) == 1


async def test_a_healthy_stream_ends_the_backoff(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    patient = replace(TIMES, retry=Backoff(first=3600, longest=3600))
    async with watching(client, patient):
        await eventually(lambda: proxy.count(watches) == 1)
        await asyncio.sleep(patient.healthy)
        await api.end_streams()
        await eventually(lambda: proxy.count(watches) == 2)


async def test_a_silent_connection_is_given_up(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    async with watching(client, replace(TIMES, silence=0.5)) as watched:
        await eventually(lambda: proxy.count(watches) == 1)
        with proxy.inject(Freeze(), on=lambda request: request.number <= 2):
            await fill(api, "a")
            await eventually(lambda: watched.agrees_with(api))
        assert proxy.count(watches) >= 2
        assert proxy.count(lists) == 1


async def test_bookmarks_keep_a_quiet_stream_and_tell_that_it_is_alive(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    async with watching(client, replace(TIMES, silence=2)) as watched:
        await asyncio.sleep(2.5)
        await eventually(lambda: watched.cache.age() < 0.5)
        assert proxy.count(watches) == 1
        with proxy.inject(Freeze(), on=watches):
            await eventually(lambda: watched.cache.age() > 0.5)


async def test_a_watch_that_ends_at_once_again_and_again_makes_it_list(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    with proxy.inject(EndsAtOnce(), on=watches, times=4):
        async with watching(client) as watched:
            await fill(api, "a")
            await eventually(lambda: watched.agrees_with(api))
            await eventually(lambda: proxy.count(watches) == 5)
    assert [lists(request) for request in proxy.requests] == [
        True,
        False,
        False,
        False,
        True,
        False,
        False,
    ]


async def test_a_list_from_a_server_that_lags_behind_is_refused(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, caplog: pytest.LogCaptureFixture
) -> None:
    stale = StaleAnswers()
    with proxy.inject(stale, on=lists):
        async with watching(client) as watched:
            await fill(api, "a")
            await eventually(lambda: watched.agrees_with(api))
            api.compact()
            with proxy.inject(EventError(status=410), on=watches, times=1):
                await eventually(lambda: "the list is of version" in caplog.text)
            assert watched.get("a") is not None
            proxy.withdraw(stale)
            await fill(api, "b")
            await eventually(lambda: watched.agrees_with(api))
    assert len(watched.changes) == 2


async def test_news_of_a_server_that_was_put_back_in_time_does_not_count_as_life(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    times = replace(TIMES, silence=0.5)
    async with watching(client, times) as watched:
        await fill(api, "a")
        await eventually(lambda: watched.agrees_with(api))
        api.objects.clear()
        api.revision = 10
        await api.end_streams()
        await fill(api, "b")
        await eventually(lambda: watched.cache.age() > 2 * times.silence)
        assert watched.get("a") is not None


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(
            {"spec": DEEP, "status": {"text": ']}]}\\"'}},
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 13), reason="3.13 reads such an object"
            ),
            id="deep",
        ),
        pytest.param(
            {"labels": {str(number): "" for number in range(meta.MOST_VALUES + 2)}}, id="large"
        ),
        pytest.param({"value": "no number"}, id="wrong"),
    ],
)
async def test_an_object_that_cannot_be_read_costs_itself_alone(
    api: TinyApi, client: ApiWriter, caplog: pytest.LogCaptureFixture, hostile: dict[str, object]
) -> None:
    await api.create(PATH, "a")
    await api.create(PATH, "bad", **hostile)
    await api.create(PATH, "c")
    async with watching(client, replace(TIMES, page=3)) as watched:

        def seen() -> set[str]:
            return {one.metadata.name for one in watched.cache.store.values()}

        assert (seen(), watched.cache.unreadable) == ({"a", "c"}, 1)
        assert "ignoring pods n/bad: " in caplog.text
        await api.update(PATH, "c", **hostile)
        await api.update(PATH, "a", value=3)
        await eventually(lambda: watched.last[1] and watched.last[1].value == 3)
        assert (seen(), watched.cache.unreadable) == ({"a"}, 2)
        await api.delete(PATH, "bad")
        await api.update(PATH, "c", **dict.fromkeys(hostile))
        await eventually(lambda: seen() == {"a", "c"})
        assert watched.cache.unreadable == 0

"""PodGroups, as an example, are followed where they are served, and only there."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from mpijob_elastic.kube import served
from mpijob_elastic.kube.resources import POD_GROUPS
from mpijob_elastic.kube.served import WhileServed
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.observe.pod_groups import GangFacts, read
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request, lists
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

GROUP = "/apis/scheduling.volcano.sh/v1beta1"
PATH = POD_GROUPS.path("n")


class Followed:
    """The cache, and each change of what is known."""

    def __init__(self, client: ApiWriter, versions: Sequence[str] = ()) -> None:
        self.cache: WatchCache[GangFacts] = WatchCache(
            client, POD_GROUPS, decode=read, on_change=lambda _old, _new: None, random=Random(1), namespace="n"
        )
        self.served = WhileServed(
            client,
            POD_GROUPS,
            self.cache,
            versions=versions,
            on_change=lambda: self.told.append(self.served.known),
            every=0.02,
        )
        self.told: list[bool | None] = []


@asynccontextmanager
async def running(followed: Followed) -> AsyncIterator[Followed]:
    task = asyncio.create_task(followed.served.run())
    yield followed
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.fixture
async def gangs(client: ApiWriter) -> AsyncIterator[Followed]:
    async with running(Followed(client)) as followed:
        yield followed


def asks(request: Request) -> bool:
    return request.path == GROUP


async def test_they_are_followed_once_they_are_served_until_they_are_not(
    api: TinyApi, proxy: FaultProxy, gangs: Followed
) -> None:
    await eventually(lambda: proxy.count(asks) > 2)
    assert proxy.count(lists) == 0
    await api.create(PATH, "j", spec={"minMember": 3})
    api.objects[GROUP] = {"resources": [{"name": "jobs"}]}
    asked = proxy.count(asks)
    await eventually(lambda: proxy.count(asks) > asked + 2)
    assert proxy.count(lists) == 0
    api.objects[GROUP] = {"resources": [{"name": "jobs"}, {"name": "podgroups"}]}
    await eventually(lambda: gangs.cache.store.get("n", "j"))
    await api.update(PATH, "j", spec={"minMember": 2})
    await eventually(lambda: (group := gangs.cache.store.get("n", "j")) and group.min_member == 2)
    del api.objects[GROUP]
    asked = proxy.count(asks)
    await eventually(lambda: proxy.count(asks) > asked + 2)
    await api.update(PATH, "j", spec={"minMember": 1})
    asked = proxy.count(asks)
    await eventually(lambda: proxy.count(asks) > asked + 2)
    group = gangs.cache.store.get("n", "j")
    assert group is not None
    assert group.min_member == 2
    assert gangs.told == [False, True, False]


async def test_what_was_seen_before_they_went_is_not_taken_for_what_there_is(
    api: TinyApi, proxy: FaultProxy, gangs: Followed
) -> None:
    api.objects[GROUP] = {"resources": [{"name": "podgroups"}]}
    await eventually(lambda: gangs.served.known)
    del api.objects[GROUP]
    await eventually(lambda: gangs.served.known is False)
    with proxy.inject(Answer(status=500), on=lists):
        listed = proxy.count(lists)
        api.objects[GROUP] = {"resources": [{"name": "podgroups"}]}
        await eventually(lambda: proxy.count(lists) > listed)
        assert gangs.served.known is False
    await eventually(lambda: gangs.served.known)


async def test_an_answer_that_tells_nothing_changes_nothing(api: TinyApi, proxy: FaultProxy, gangs: Followed) -> None:
    api.objects[GROUP] = {"resources": [{"name": "podgroups"}]}
    await eventually(gangs.cache.synced.is_set)
    await api.create(PATH, "j", spec={"minMember": 3})
    await eventually(lambda: gangs.cache.store.get("n", "j"))
    with proxy.inject(Answer(status=500), on=asks):
        asked = proxy.count(asks)
        await eventually(lambda: proxy.count(asks) > asked + 2)
        await api.update(PATH, "j", spec={"minMember": 2})
        await eventually(lambda: (group := gangs.cache.store.get("n", "j")) and group.min_member == 2)
    assert gangs.told == [True]


async def test_an_answer_that_fails_at_the_start_is_asked_for_again_soon(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it stands still: pods of a queue, and workers that are to leave for another job."""
    monkeypatch.setattr(served, "SOON", 0.02)
    api.objects[GROUP] = {"resources": [{"name": "podgroups"}]}
    cache = Followed(client).cache
    once_a_minute = served.WhileServed(client, POD_GROUPS, cache)
    with proxy.inject(Answer(status=503), on=asks, times=2):
        task = asyncio.create_task(once_a_minute.run())
        await eventually(lambda: once_a_minute.known)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_older_version_is_followed_until_the_best_is_served(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    older = POD_GROUPS.at("v1alpha1")
    found = {"resources": [{"name": "podgroups"}]}
    api.objects[GROUP.replace("v1beta1", "v1alpha1")] = found
    await api.create(older.path("n"), "j", spec={"minMember": 3})
    async with running(Followed(client, ["v1beta1", "v1alpha1"])) as gangs:
        await eventually(lambda: gangs.cache.store.get("n", "j"))
        assert gangs.served.version == "v1alpha1"
        with proxy.inject(Answer(status=500), on=asks):  # it may be served, or not
            asked = proxy.count(asks)
            await eventually(lambda: proxy.count(asks) > asked + 2)
            assert gangs.served.version == "v1alpha1"
        await api.create(PATH, "j", spec={"minMember": 2})
        api.objects[GROUP] = found
        await eventually(lambda: gangs.served.version == "v1beta1")
        await api.update(PATH, "j", spec={"minMember": 1})
        await eventually(lambda: (group := gangs.cache.store.get("n", "j")) and group.min_member == 1)
        [known] = gangs.cache.store.values()
        gangs.cache.store.forget("n", "j", known.metadata.uid)  # as a write does that is answered with 404 meanwhile
        del api.objects[GROUP]
        await eventually(lambda: (group := gangs.cache.store.get("n", "j")) and group.min_member == 3)
        assert gangs.served.version == "v1alpha1"
        assert gangs.told == [True]

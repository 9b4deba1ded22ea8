"""Watches of what is served only at times (PodGroups, as an example), and of several namespaces used as one."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.gangs.facts import VOLCANO_POD_GROUPS, PodGroup, read
from mpijob_elastic.kube import served
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.served import Served, ServerVersion, WhileServed
from mpijob_elastic.kube.watch import WatchCache, Watches, watches
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request, lists
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import PATIENCE, eventually
from tests.product.kube.watched import TIMES, Item, running

GROUP = "/apis/scheduling.volcano.sh/v1beta1"
PATH = VOLCANO_POD_GROUPS.path("n")
FOUND = {"resources": [{"name": "jobs"}, {"name": "podgroups"}]}


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        ({"minor": "35"}, 35),
        ({"minor": "35+"}, 35),
        ({"minor": ""}, 0),
        ({"minor": "x35"}, 0),
        ({"minor": 35}, 0),
        (None, 0),
    ],
    ids=str,
)
async def test_the_version_of_the_server(
    api: TinyApi, client: ApiWriter, answer: dict[str, Any] | None, minor: int
) -> None:
    if answer is not None:
        api.put("/version", answer)
    changes = list[int | None]()
    version = ServerVersion(client, on_change=lambda: changes.append(version.minor), every=0.02)
    assert version.minor is None
    async with running(version.run()):
        await eventually(lambda: version.minor == minor)
        api.put("/version", {"minor": "38"})
        await eventually(lambda: version.minor == 38)
    assert changes == [minor, 38]


async def test_without_an_answer_the_version_stays_unknown(
    client: ApiWriter, proxy: FaultProxy
) -> None:
    def asks_version(request: Request) -> bool:
        return request.path == "/version"

    version = ServerVersion(client, every=0.02)
    with proxy.inject(Answer(status=500), on=asks_version):
        async with running(version.run()):
            await eventually(lambda: proxy.count(asks_version) > 2)
    assert version.minor is None


class Followed:
    """The cache, and each change of what is known."""

    def __init__(self, client: ApiWriter, *, every: float = 0.02) -> None:
        self.told: list[bool | None] = []
        self.cache: WatchCache[PodGroup] = WatchCache(
            client,
            VOLCANO_POD_GROUPS,
            decode=read,
            on_change=lambda _old, _new: None,
            random=Random(1),
            namespace="n",
        )
        self.served = WhileServed(
            client,
            VOLCANO_POD_GROUPS,
            self.cache,
            on_change=lambda: self.told.append(self.served.known),
            every=every,
        )

    def size(self) -> int | None:
        group = self.cache.store.get("n", "j")
        return group.min_member if group else None


@pytest.fixture
async def gangs(client: ApiWriter) -> AsyncIterator[Followed]:
    followed = Followed(client)
    async with running(followed.served.run()):
        yield followed


def asks(request: Request) -> bool:
    return request.path == GROUP


async def has_asked(proxy: FaultProxy) -> None:
    """Wait for three more questions."""
    asked = proxy.count(asks)
    await eventually(lambda: proxy.count(asks) > asked + 2)


async def test_they_are_followed_once_they_are_served_until_they_are_not(
    api: TinyApi, proxy: FaultProxy, gangs: Followed
) -> None:
    await has_asked(proxy)
    await api.create(PATH, "j", spec={"minMember": 4})
    api.objects[GROUP] = {"resources": FOUND["resources"][:1]}
    await has_asked(proxy)
    assert proxy.count(lists) == 0
    api.objects[GROUP] = FOUND
    await eventually(lambda: gangs.size() == 4)
    await api.update(PATH, "j", spec={"minMember": 3})
    await eventually(lambda: gangs.size() == 3)
    with proxy.inject(Answer(status=500), on=asks):  # which says nothing
        await has_asked(proxy)
        await api.update(PATH, "j", spec={"minMember": 2})
        await eventually(lambda: gangs.size() == 2)
    del api.objects[GROUP]
    await has_asked(proxy)
    await api.update(PATH, "j", spec={"minMember": 1})
    await has_asked(proxy)
    assert (gangs.size(), gangs.told) == (2, [False, True, False])


async def test_what_was_seen_before_they_went_is_not_taken_for_what_there_is(
    api: TinyApi, proxy: FaultProxy, gangs: Followed
) -> None:
    api.objects[GROUP] = FOUND
    await eventually(lambda: gangs.served.known)
    del api.objects[GROUP]
    await eventually(lambda: gangs.served.known is False)
    with proxy.inject(Answer(status=500), on=lists):
        listed = proxy.count(lists)
        api.objects[GROUP] = FOUND
        await eventually(lambda: proxy.count(lists) > listed)
        assert gangs.served.known is False
    await eventually(lambda: gangs.served.known)


async def test_an_answer_that_fails_at_the_start_is_asked_for_again_soon(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it stands still: pods of a queue, and workers that are to leave for another job."""
    monkeypatch.setattr(served, "SOON", 0.02)
    api.objects[GROUP] = FOUND
    gangs = Followed(client, every=served.EVERY)
    with proxy.inject(Answer(status=503), on=asks, times=2):
        async with running(gangs.served.run()):
            await eventually(lambda: gangs.served.known)


async def test_a_watch_that_fails_is_not_left_unseen(api: TinyApi, client: ApiWriter) -> None:
    """A fault of this program ends it, as it does in the watches that it cannot do without."""
    api.objects[GROUP] = FOUND
    await api.create(PATH, "j", spec={"minMember": 4})

    def faulty(_old: PodGroup | None, _new: PodGroup | None) -> None:
        raise ZeroDivisionError

    cache = WatchCache(
        client, VOLCANO_POD_GROUPS, decode=read, on_change=faulty, random=Random(1), namespace="n"
    )
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(WhileServed(client, VOLCANO_POD_GROUPS, cache).run(), PATIENCE)


def of(client: ApiWriter, *namespaces: str) -> WatchCache[Item] | Watches[Item]:
    decode = msgspec.json.Decoder(Item).decode
    unheard = partial(WatchCache[Item], on_change=lambda _old, _new: None)
    return watches(
        partial(unheard, client, PODS, decode=decode, random=Random(1), times=TIMES), namespaces
    )


def known(found: WatchCache[Item] | Watches[Item]) -> set[str]:
    return {f"{one.metadata.namespace}/{one.metadata.name}" for one in found.store.values()}


async def test_exactly_these_namespaces_are_seen(api: TinyApi, client: ApiWriter) -> None:
    for namespace in "abc":
        await api.create(PODS.path(namespace), "train")
    found = of(client, "a", "b")
    async with running(found.run()):
        await asyncio.wait_for(found.synced.wait(), PATIENCE)
        assert known(found) == {"a/train", "b/train"}
        assert found.store.get("c", "train") is None
        await api.create(PODS.path("b"), "later")
        await eventually(lambda: "b/later" in known(found))
        written = found.store.get("b", "train")
        assert written is not None
        await api.delete(PODS.path("b"), "train")
        await eventually(lambda: known(found) == {"a/train", "b/later"})
        found.store.written(written)  # an answer that is older than what was seen
        gone = found.store.get("a", "train")
        assert gone is not None
        found.store.forget("a", "train", gone.metadata.uid)
        assert known(found) == {"b/later"}
        assert 0.0 <= found.age() < 60.0
        assert found.unreadable == 0


async def test_it_is_synced_once_each_namespace_is(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await api.create(PODS.path("a"), "train")

    def of_b(request: Request) -> bool:
        return request.path == PODS.path("b")

    found, fault = of(client, "a", "b"), Answer(status=403, reason="Forbidden")
    with proxy.inject(fault, on=of_b):
        async with running(found.run()):
            await eventually(lambda: known(found) == {"a/train"} and proxy.count(of_b) > 0)
            assert not found.synced.is_set()
            proxy.withdraw(fault)
            await asyncio.wait_for(found.synced.wait(), PATIENCE)
    found.restart()
    assert not found.synced.is_set()


async def test_what_is_served_is_asked_for_again_and_the_last_answer_holds(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    asked = Served(client, VOLCANO_POD_GROUPS, every=0.02)
    assert asked.known is None
    async with running(asked.run()):
        await eventually(lambda: asked.known is False)
        api.objects[GROUP] = FOUND
        await eventually(lambda: asked.known is True)
        with proxy.inject(Answer(status=503), on=asks):
            await has_asked(proxy)
            assert asked.known is True

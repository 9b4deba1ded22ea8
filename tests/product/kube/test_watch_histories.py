"""The watch cache through random histories of a server and of the way to it."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.watch import WatchCache, WatchTimes
from tests.doubles.api import TinyApi
from tests.examples import share
from tests.faults import faults
from tests.faults.faults import (
    Answer,
    EventError,
    Fault,
    Freeze,
    Request,
    everything,
    lists,
    watches,
)
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.kube.watched import PATH, Item, Watched, running, state

TIMES = WatchTimes(
    silence=0.15,
    opening=0.15,
    healthy=0.1,
    list_timeout=0.15,
    retry=Backoff(first=0.002, longest=0.01),
    page=2,
)

FAULTS: dict[str, tuple[Callable[[], Fault], Callable[[Request], bool]]] = {
    "410": (lambda: Answer(status=410), everything),
    "429": (lambda: Answer(status=429, retry_after=0), everything),
    "503": (lambda: Answer(status=503), everything),
    "reset": (faults.Reset, everything),
    "answer lost": (lambda: faults.Reset(after=True), everything),
    "410 in the stream": (lambda: EventError(status=410), watches),
    "500 in the stream": (lambda: EventError(status=500), watches),
    "freeze": (Freeze, everything),
    "freeze lists": (Freeze, lists),
    "server lags": (faults.StaleAnswers, lists),
}

# A verb, what it is done to, and how many requests a fault strikes.
steps = st.one_of(
    st.tuples(
        st.sampled_from(["write", "our write", "delete", "our delete"]),
        st.sampled_from("abc"),
        st.just(0),
    ),
    st.tuples(st.just("break"), st.sampled_from(sorted(FAULTS)), st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["end streams", "cut", "compact", "heal", "pause"]), st.just(""), st.just(0)
    ),
)


@given(history=st.lists(steps, max_size=30), seed=st.integers(0, 2**32))
@share(0.2)
def test_in_the_end_the_cache_is_what_the_server_has_and_on_the_way_it_never_went_back(
    history: list[tuple[str, str, int]], seed: int
) -> None:
    asyncio.run(live(history, seed))


@dataclass
class World:
    """A server, the way to it, and a cache at its end."""

    api: TinyApi
    proxy: FaultProxy
    cache: WatchCache[Item]
    stack: AsyncExitStack
    faults: list[Fault]

    async def step(self, verb: str, subject: str, times: int) -> None:
        match verb:
            case "break":
                make, on = FAULTS[subject]
                self.faults.append(make())
                self.stack.enter_context(self.proxy.inject(self.faults[-1], on=on, times=times))
            case "end streams":
                await self.api.end_streams()
            case "cut":
                self.proxy.cut()
            case "compact":
                self.api.compact()
            case "heal":
                await self.heal()
            case "pause":
                await asyncio.sleep(0.01)
            case _:
                await self.change(verb, subject)

    async def change(self, verb: str, name: str) -> None:
        there = f"{PATH}/{name}" in self.api.objects
        if verb in {"write", "our write"}:
            item = await (
                self.api.update(PATH, name, value=1) if there else self.api.create(PATH, name)
            )
            if verb == "our write":
                self.cache.store.written(msgspec.convert(item, Item))
        elif there:
            item = await self.api.delete(PATH, name)
            if verb == "our delete":
                self.cache.store.forget("n", name, item["metadata"]["uid"])

    async def heal(self) -> None:
        for fault in self.faults:
            if isinstance(fault, Freeze):
                fault.thaw()
        await self.stack.aclose()


async def live(history: Iterable[tuple[str, str, int]], seed: int) -> None:
    told: dict[str, Item] = {}

    def change(old: Item | None, new: Item | None) -> None:
        """Repeat what is told, and accept no step back and no step that changes nothing."""
        one = new or old
        assert one is not None
        assert told.pop(one.metadata.name, None) == old
        if new is not None:
            assert old is None or int(old.metadata.resource_version) < int(
                new.metadata.resource_version
            )
            told[new.metadata.name] = new

    async with (
        TinyApi() as api,
        FaultProxy(api.kubeconfig) as proxy,
        await connect(user_agent="test", kubeconfig=proxy.kubeconfig) as client,
        AsyncExitStack() as stack,
    ):
        watched = Watched(client, TIMES, seed=seed, on_change=change)
        world = World(api, proxy, watched.cache, stack, [])
        async with running(watched.cache.run()) as task:
            for step in history:
                await world.step(*step)
            await world.heal()
            await eventually(
                lambda: task.done() or (watched.cache.synced.is_set() and watched.agrees_with(api))
            )
            assert not task.done(), task.exception()
        assert state(told.values()) == state(watched.cache.store.values())

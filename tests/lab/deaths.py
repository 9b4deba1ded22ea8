"""The death of a controller at one of its writes, before the API server has heard of it or before the answer comes."""

import asyncio
from collections.abc import Callable, Coroutine

from tests.faults.faults import Call, Request, Reset
from tests.faults.proxy import FaultProxy


async def died(
    proxy: FaultProxy,
    controller: asyncio.Task[None],
    play: Coroutine[None, None, None],
    *,
    at: Callable[[Request], bool],
    nth: int,
    after: bool,
) -> bool:
    """Play until the controller behind the proxy dies at the nth such request from now on; return whether it did.

    after: the API server has heard of the request, and nobody hears the answer. The scenario ends with the controller.
    """
    dead, before = asyncio.Event(), proxy.count(at)

    async def die(_: Request) -> None:
        dead.set()

    def is_the_one(request: Request) -> bool:
        count = proxy.count(lambda other: at(other) and other.number <= request.number)
        return at(request) and count == before + nth

    with proxy.inject(Call(callback=die, after=after), on=is_the_one):
        done = asyncio.create_task(play)
        await asyncio.wait({done, asyncio.create_task(dead.wait())}, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        await asyncio.wait({done})
    with proxy.inject(Reset()):
        proxy.cut()
        controller.cancel()
        await asyncio.wait({controller})
    return dead.is_set()

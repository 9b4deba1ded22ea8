"""Turns that are evenly spaced, in virtual time."""

import asyncio

from mpijob_elastic.act.rates import Rate
from tests.product.kube.virtual_time import in_no_time


async def taken(rate: Rate, count: int) -> list[float]:
    loop = asyncio.get_running_loop()
    began, times = loop.time(), []

    async def take() -> None:
        await rate.turn()
        times.append(round(loop.time() - began, 3))

    await asyncio.gather(*(take() for _ in range(count)))
    return times


@in_no_time
async def test_a_crowd_is_let_through_one_by_one() -> None:
    assert await taken(Rate(10.0), 4) == [0.0, 0.1, 0.2, 0.3]


@in_no_time
async def test_turns_that_nobody_took_are_not_saved_up() -> None:
    rate = Rate(10.0)
    await asyncio.sleep(60)
    assert await taken(rate, 3) == [0.0, 0.1, 0.2]


@in_no_time
async def test_turns_come_together_no_faster() -> None:
    rate = Rate(10.0, together=3)
    assert await taken(rate, 7) == [0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.6]
    await asyncio.sleep(0.1)
    assert await taken(rate, 3) == [0.0, 0.0, 0.2]
    await asyncio.sleep(60)
    assert await taken(rate, 4) == [0.0, 0.0, 0.0, 0.3]

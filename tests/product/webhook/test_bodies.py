"""Bodies that are read at once, and share a bounded memory."""

import asyncio

import pytest

from webhook.bodies import Bodies, Crowded


async def test_a_body_whose_time_ends_while_it_is_given_up_fails_nobody_else() -> None:
    bodies, limits = Bodies(most=10), list[asyncio.Timeout]()

    async def greedy() -> None:
        async with asyncio.timeout(60) as limit:
            limits.append(limit)
            with bodies.reading("greedy", limit) as grew:
                grew(8)
                await asyncio.Event().wait()

    task = asyncio.create_task(greedy())
    await asyncio.sleep(0)
    limits[0].reschedule(0.0)
    await asyncio.sleep(0)  # its time is over, but it has not run since
    assert not task.done()
    with bodies.reading("other", asyncio.timeout(60)) as grew:
        grew(4)
    with pytest.raises(Crowded):
        await task

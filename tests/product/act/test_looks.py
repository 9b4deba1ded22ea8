"""Turns that are evenly spaced and fairly shared, in virtual time."""

import asyncio
from collections import Counter

from mpijob_elastic.act.looks import FairTurns
from tests.product.kube.virtual_time import in_no_time


async def taken(turns: FairTurns, *whose: str, each: float = 0.0) -> list[tuple[float, str]]:
    """Return when each NAMESPACE/JOB that asks at once, in this order, got its turn; each holds it for `each` s."""
    loop = asyncio.get_running_loop()
    began, times = loop.time(), []

    async def take(who: str) -> None:
        namespace, _, job = who.partition("/")
        async with turns.turn(namespace, job):
            times.append((round(loop.time() - began, 3), who))
            await asyncio.sleep(each)

    await asyncio.gather(*map(take, whose))
    return times


@in_no_time
async def test_a_crowd_is_let_through_evenly_and_turns_that_nobody_took_are_not_saved_up() -> None:
    for together, count, times in (
        (1, 4, [0.0, 0.1, 0.2, 0.3]),
        (3, 7, [0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.6]),
    ):
        turns = FairTurns(at_once=100, a_second=10.0, together=together)
        for _ in range(2):
            assert [at for at, _ in await taken(turns, *["n/j"] * count)] == times
            await asyncio.sleep(60)
    await taken(turns, *["n/j"] * 7)
    await asyncio.sleep(0.1)
    assert [at for at, _ in await taken(turns, *["n/j"] * 3)] == [0.0, 0.0, 0.2]


@in_no_time
async def test_turns_go_round_the_namespaces_and_the_jobs_of_each() -> None:
    turns = FairTurns(at_once=100, a_second=1.0)
    order = await taken(turns, *["a/1"] * 4, *["a/2"] * 2, *["b/1"] * 2)
    assert [who for _, who in order] == ["a/1", "a/1", "b/1", "a/2", "b/1", "a/1", "a/2", "a/1"]


@in_no_time
async def test_a_namespace_leaves_places_to_others_and_a_job_to_its_namespace() -> None:
    turns = FairTurns(at_once=12, a_second=1000.0)
    order = await taken(turns, *["a/1"] * 9, *["a/2"] * 9, *["b/1"] * 9, each=60.0)
    assert Counter(who for at, who in order if at < 1) == {"a/1": 3, "a/2": 2, "b/1": 3}
    assert len(order) == 27


@in_no_time
async def test_a_place_is_free_again_however_its_turn_ended() -> None:
    turns = FairTurns(at_once=3, a_second=10.0)

    async def hold() -> None:
        async with turns.turn("n", "j"):
            await asyncio.sleep(3600)

    holds, waits, later = (asyncio.create_task(hold()) for _ in range(3))
    await asyncio.sleep(1)
    assert not turns._places.free_for("n", "j")
    for task in (waits, holds):  # one that waits for its turn, and one that has it
        task.cancel()
    await asyncio.gather(holds, waits, return_exceptions=True)
    await asyncio.sleep(1)
    assert not turns._places.free_for("n", "j"), "the next has it"
    later.cancel()
    await asyncio.gather(later, return_exceptions=True)
    assert await taken(turns, "n/j") == [(0.0, "n/j")]
    assert not turns._waiting
    assert not turns._places._held

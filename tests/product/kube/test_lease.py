"""Leader election in virtual time: one promise after another, and all of them at once under random trouble."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube.lease import LeaseTimes
from tests.examples import share
from tests.product.kube.lease_world import LEASE, Candidate, Server, Write, led, now, until
from tests.product.kube.virtual_time import in_no_time, run

TIMES = LeaseTimes()


@led
async def test_the_lease_tells_who_leads_since_when_and_how_often_that_changed(
    server: Server, first: Candidate
) -> None:
    assert now() < 0.2, "a fresh one is taken at once"
    taken = server.last.spec
    times = dict.fromkeys(("acquireTime", "renewTime"), taken["renewTime"])
    assert taken == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        **times,
    }
    await asyncio.sleep(60)
    renewed = server.last.spec
    assert renewed == {**taken, "renewTime": renewed["renewTime"]}
    assert renewed["renewTime"] > taken["renewTime"]
    assert 60 / 2.5 - 1 <= len(server.history) <= 60 / 1.5 + 2
    second = Candidate(server, "b")
    await first.stop()
    await until(lambda: second.leads)
    moved = server.last.spec
    assert (moved["holderIdentity"], moved["leaseTransitions"]) == ("b", 1)
    assert moved["acquireTime"] > taken["acquireTime"]
    assert server.objects[LEASE]["metadata"]["labels"] == {"app": "x"}


@led
async def test_a_clean_stop_waits_for_the_work_releases_and_hands_over_within_a_second(
    server: Server, first: Candidate
) -> None:
    second = Candidate(server, "b")
    await asyncio.sleep(120)
    assert not second.log, "others wait while it is renewed"
    first.stopping = 20
    stopping = asyncio.create_task(first.stop())
    await asyncio.sleep(19)
    assert first.leads, "it renews while its work comes to an end"
    await stopping
    released = server.last
    assert released.at >= first.times("ends")[0]
    assert (released.holder, released.spec["leaseDurationSeconds"]) == ("", 1)
    assert await until(lambda: second.leads) <= 1


@led
async def test_after_a_crash_another_leads_when_the_lease_has_run_out(
    server: Server, first: Candidate
) -> None:
    second = Candidate(server, "b")
    await asyncio.sleep(30)
    await first.kill()
    last = server.last.at
    await until(lambda: second.leads)
    assert TIMES.duration <= server.last.at - last <= 17


@pytest.mark.parametrize("mode", ["frozen", "429"])
def test_a_holder_that_cannot_renew_stops_in_time_and_leads_again_later(mode: str) -> None:
    @led
    async def scenario(server: Server, first: Candidate) -> None:
        await asyncio.sleep(10)
        last = server.last.at
        first.wire.mode = mode
        await until(lambda: not first.leads)
        assert now() - last <= TIMES.renew_deadline
        assert first.lease.time_left() == 0
        asked = [at for at, _ in first.wire.requests if last < at < last + 9]
        assert mode != "429" or all(later - earlier >= 4 for earlier, later in pairwise(asked)), (
            "as the server says"
        )
        await until(lambda: first.times("ends"))
        assert now() - last <= TIMES.renew_deadline + 0.1
        first.wire.mode = "fine"
        await until(lambda: first.leads and len(first.times("starts")) == 2)

    scenario()


@in_no_time
async def test_a_claim_whose_answer_was_lost_is_taken_up_without_a_wait() -> None:
    server = Server()
    server.edit()
    first = Candidate(server, "a")
    first.wire.mode = "answers lost"
    await until(lambda: len(server.history) == 2)
    first.wire.mode = "fine"
    assert await until(lambda: first.leads) <= 2 * TIMES.retry
    await first.stop()


@led
async def test_one_slow_or_lost_answer_or_a_foreign_change_does_not_cost_the_lease(
    server: Server, first: Candidate
) -> None:
    second = Candidate(server, "b")
    for mode in ("frozen", "refused", "503", "429", "answers lost"):
        first.wire.mode = mode
        await asyncio.sleep(4)
        first.wire.mode = "fine"
        await asyncio.sleep(10)
    server.edit(metadata={"annotations": {"seen": "true"}})
    await asyncio.sleep(30)
    assert server.objects[LEASE]["metadata"]["annotations"] == {"seen": "true"}
    server.remove()
    await asyncio.sleep(30)
    assert server.last.holder == "a", "it is made again by its holder and by nobody else"
    assert ([what for _, what in first.log], second.log) == (["starts"], [])


@pytest.mark.parametrize("broken", [False, True])
def test_work_that_ends_ends_the_run_and_its_failure_is_told(broken: bool) -> None:
    async def work() -> None:
        await asyncio.sleep(5)
        if broken:
            raise RuntimeError("broken")

    async def scenario() -> None:
        server = Server()
        server.edit()
        first = Candidate(server, "a")
        first.work = work
        [failure] = await asyncio.gather(first.task, return_exceptions=True)
        assert str(failure) == ("broken" if broken else "None")
        assert (first.leads, server.last.holder) == (False, "")

    run(scenario())


@led
async def test_a_write_may_take_no_longer_than_until_another_may_lead(
    server: Server, first: Candidate
) -> None:
    second = Candidate(server, "b")
    await asyncio.sleep(20)
    first.wire.mode = "refused"
    ends = [now() + first.lease.time_left()]
    while first.leads:
        assert first.lease.time_left() >= TIMES.duration - TIMES.renew_deadline
        ends.append(now() + first.lease.time_left())
        await asyncio.sleep(0.1)
    await until(lambda: second.leads)
    assert max(ends) <= server.last.at


@led
async def test_a_lease_taken_by_force_is_lost_as_soon_as_that_is_seen(
    server: Server, first: Candidate
) -> None:
    server.edit(spec={"holderIdentity": "thief", "leaseDurationSeconds": 15})
    assert await until(lambda: not first.leads) <= 6
    await until(lambda: first.times("ends"))
    await first.stop()
    assert server.last.holder == "thief"


@pytest.mark.parametrize("wrong", [{"duration": 10}, {"renew_deadline": 2.4}, {"retry": 9}])
def test_times_that_do_not_fence_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="defaults are 15, 10, 2"):
        LeaseTimes(**wrong)


MODES = ["fine", "frozen", "refused", "503", "429", "answers lost", "slow"]

# Who it happens to, what, and for how many seconds.
troubles = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([*MODES, *MODES, "killed", "stopped", "lease deleted"]),
        st.sampled_from([0.0, 0.5, 3.0, 8.0, 12.0, 20.0]),
    ),
    max_size=12,
)


@given(troubles=troubles, seed=st.integers(0, 2**32))
@share(0.3)
def test_there_are_never_two_leaders_and_in_the_end_there_is_one(
    troubles: list[tuple[int, str, float]], seed: int
) -> None:
    run(scenario(troubles, seed))


async def scenario(troubles: list[tuple[int, str, float]], seed: int) -> None:
    server = Server()
    candidates = [Candidate(server, f"{number}", seed=seed + number) for number in range(3)]

    def only_the_holder_holds(write: Write) -> None:
        """Check the server's record at the moment of each write."""
        others = [one.identity for one in candidates if one.leads and one.identity != write.holder]
        assert not (write.holder and others), (
            f"{write.holder} takes the Lease while {others} may write"
        )

    server.on_write = only_the_holder_holds
    watcher = asyncio.create_task(watch(server, candidates))
    for number, what, seconds in troubles:
        await happen(server, candidates, number, what)
        await asyncio.sleep(seconds)
    for one in candidates:
        one.wire.mode = "fine"
    await until(lambda: any(one.leads for one in candidates) or watcher.done(), within=60)
    assert not watcher.done(), watcher.exception()
    for one in candidates:
        await one.stop()
    watcher.cancel()
    assert [len(one.times("starts")) for one in candidates] == [
        len(one.times("ends")) for one in candidates
    ]


async def watch(server: Server, candidates: list[Candidate]) -> None:
    """Five times a second: at most one may write, and the server knows of no other."""
    while True:
        holding = [one.identity for one in candidates if one.leads]
        assert len(holding) <= 1, holding
        assert not holding or server.last.holder in {holding[0], ""}
        await asyncio.sleep(0.2)


async def happen(server: Server, candidates: list[Candidate], number: int, what: str) -> None:
    candidate = candidates[number]
    if what == "lease deleted":
        server.remove()
    elif what in MODES:
        candidate.wire.mode = what
    else:
        await (candidate.kill() if what == "killed" else candidate.stop())
        name = f"{candidate.identity}'"
        candidates[number] = Candidate(server, name, seed=len(name))

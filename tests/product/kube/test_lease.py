"""Leader election in virtual time, one promise after another; `test_lease_trouble` has all of them at once."""

import asyncio
from itertools import pairwise

import pytest

from mpijob_elastic.kube.lease import LeaseTimes
from tests.product.kube.lease_world import LEASE, Candidate, Server, led, now, until
from tests.product.kube.virtual_time import in_no_time, run

TIMES = LeaseTimes()


@in_no_time
async def test_a_missing_lease_is_taken_after_its_duration() -> None:
    candidate = Candidate(Server(), "a")
    assert TIMES.duration <= await until(lambda: candidate.leads) < TIMES.duration + 1
    await candidate.stop()


@led
async def test_the_lease_tells_who_leads_since_when_and_how_often_that_changed(
    server: Server, first: Candidate
) -> None:
    assert now() < 0.2, "a fresh one is taken at once"
    taken = server.last.spec
    times = dict.fromkeys(("acquireTime", "renewTime"), taken["renewTime"])
    assert taken == {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0, **times}
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
async def test_after_a_crash_another_leads_when_the_lease_has_run_out(server: Server, first: Candidate) -> None:
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
        assert mode != "429" or all(later - earlier >= 4 for earlier, later in pairwise(asked)), "as the server says"
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
async def test_a_write_may_take_no_longer_than_until_another_may_lead(server: Server, first: Candidate) -> None:
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
async def test_a_lease_taken_by_force_is_lost_as_soon_as_that_is_seen(server: Server, first: Candidate) -> None:
    server.edit(spec={"holderIdentity": "thief", "leaseDurationSeconds": 15})
    assert await until(lambda: not first.leads) <= 6
    await until(lambda: first.times("ends"))
    await first.stop()
    assert server.last.holder == "thief"


@pytest.mark.parametrize("wrong", [{"duration": 10}, {"renew_deadline": 2.4}, {"retry": 9}])
def test_times_that_do_not_fence_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="defaults are 15, 10, 2"):
        LeaseTimes(**wrong)

"""Leader election in virtual time, one promise after another; `test_lease_trouble` has all of them at once."""

import asyncio
from itertools import pairwise

import pytest

from mpijob_elastic.kube.lease import LeaseTimes
from tests.product.kube.lease_world import Candidate, Server, led, now, until
from tests.product.kube.virtual_time import in_no_time

TIMES = LeaseTimes()


@in_no_time
async def test_a_missing_lease_is_taken_after_its_duration_and_a_fresh_one_at_once() -> None:
    server = Server()
    candidate = Candidate(server, "a")
    assert TIMES.duration <= await until(lambda: candidate.leads) < TIMES.duration + 1
    await candidate.stop()
    server = Server()
    server.store({"metadata": {"name": "l", "uid": "u"}, "spec": {}})
    candidate = Candidate(server, "a")
    assert await until(lambda: candidate.leads) < 0.1
    await candidate.stop()


@in_no_time
async def test_the_lease_tells_who_leads_since_when_and_how_often_that_changed() -> None:
    server = Server()
    first = await led(server)
    taken = server.writes[-1].spec
    assert taken is not None
    assert taken["holderIdentity"] == "a"
    assert taken["leaseDurationSeconds"] == 15
    assert taken["leaseTransitions"] == 0
    assert taken["acquireTime"] == taken["renewTime"]
    assert len(taken["renewTime"]) == len("2026-01-01T00:00:00.000000Z")
    await asyncio.sleep(60)
    renewed = server.writes[-1].spec
    assert renewed is not None
    assert renewed["acquireTime"] == taken["acquireTime"]
    assert renewed["leaseTransitions"] == 0
    assert renewed["renewTime"] > taken["renewTime"]
    assert 60 / 2.5 - 1 <= len(server.writes) <= 60 / 1.5 + 2
    second = Candidate(server, "b")
    await first.stop()
    await until(lambda: second.leads)
    moved = server.writes[-1].spec
    assert moved is not None
    assert (moved["holderIdentity"], moved["leaseTransitions"]) == ("b", 1)
    assert moved["acquireTime"] > taken["acquireTime"]
    assert server.lease is not None
    assert server.lease["metadata"]["labels"] == {"app": "x"}
    await second.stop()


@in_no_time
async def test_others_wait_while_the_lease_is_renewed() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    await asyncio.sleep(120)
    assert not second.log
    assert first.log == [(first.log[0][0], "starts")]
    await second.stop()
    await first.stop()


@in_no_time
async def test_a_clean_stop_waits_for_the_work_releases_and_hands_over_within_a_second() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    first.stopping = 20
    stopping = asyncio.create_task(first.stop())
    await asyncio.sleep(19)
    assert first.leads, "it renews while its work comes to an end"
    await stopping
    released = next(write for write in server.writes if write.holder == "" and write.at > 1)
    assert released.at >= first.times("ends")[0]
    assert released.spec is not None
    assert released.spec["leaseDurationSeconds"] == 1
    assert await until(lambda: second.leads) <= 1
    await second.stop()


@in_no_time
async def test_after_a_crash_another_leads_when_the_lease_has_run_out() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    await asyncio.sleep(30)
    await first.kill()
    last = server.writes[-1].at
    await until(lambda: second.leads)
    assert TIMES.duration <= server.writes[-1].at - last <= 17
    await second.stop()


@in_no_time
async def test_a_holder_that_cannot_renew_stops_in_time_and_leads_again_later() -> None:
    server = Server()
    first = await led(server)
    await asyncio.sleep(10)
    last = server.writes[-1].at
    first.wire.mode = "frozen"
    await until(lambda: not first.leads)
    assert now() - last <= TIMES.renew_deadline
    assert first.lease.time_left() == 0
    await until(lambda: first.times("ends"))
    assert now() - last <= TIMES.renew_deadline + 0.1
    first.wire.mode = "fine"
    await until(lambda: first.leads)
    await until(lambda: len(first.times("starts")) == 2)
    await first.stop()


@in_no_time
async def test_a_holder_that_is_told_to_wait_still_stops_in_time() -> None:
    server = Server()
    first = await led(server)
    first.wire.mode = "429"
    await until(lambda: first.times("ends"))
    assert now() - server.writes[-1].at <= TIMES.renew_deadline + 0.1
    await first.stop()


@in_no_time
async def test_a_claim_whose_answer_was_lost_is_taken_up_without_a_wait() -> None:
    server = Server()
    server.store({"metadata": {"name": "l", "uid": "u"}, "spec": {}})
    first = Candidate(server, "a")
    first.wire.mode = "answers lost"
    await until(lambda: len(server.writes) == 2)
    first.wire.mode = "fine"
    assert await until(lambda: first.leads) <= 2 * TIMES.retry
    await first.stop()


@in_no_time
async def test_one_slow_or_lost_answer_does_not_cost_the_lease() -> None:
    server = Server()
    first = await led(server)
    for mode in ("frozen", "refused", "503", "429", "answers lost"):
        first.wire.mode = mode
        await asyncio.sleep(4)
        first.wire.mode = "fine"
        await asyncio.sleep(10)
    assert first.log == [(first.log[0][0], "starts")]
    await first.stop()


@in_no_time
async def test_retry_after_is_obeyed() -> None:
    server = Server()
    first = await led(server)
    first.wire.mode = "429"
    before = len(first.wire.requests)
    await asyncio.sleep(9)
    asked = [at for at, _ in first.wire.requests[before:]]
    assert all(later - earlier >= 4 for earlier, later in pairwise(asked))
    first.wire.mode = "fine"
    await first.stop()


@in_no_time
async def test_work_that_fails_ends_the_leadership_and_the_run() -> None:
    server = Server()
    server.store({"metadata": {"name": "l", "uid": "u"}, "spec": {}})
    first = Candidate(server, "a")

    async def fail() -> None:
        await asyncio.sleep(5)
        raise RuntimeError("broken")

    first.work = fail
    with pytest.raises(RuntimeError, match="broken"):
        await first.task
    assert not first.leads
    assert server.writes[-1].holder == ""


@in_no_time
async def test_work_that_returns_ends_the_run() -> None:
    server = Server()
    server.store({"metadata": {"name": "l", "uid": "u"}, "spec": {}})
    first = Candidate(server, "a")
    first.work = lambda: asyncio.sleep(5)
    await first.task
    assert server.writes[-1].holder == ""


@in_no_time
async def test_a_write_may_take_no_longer_than_until_another_may_lead() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    await asyncio.sleep(20)
    first.wire.mode = "refused"
    ends = [now() + first.lease.time_left()]
    while first.leads:
        assert first.lease.time_left() >= TIMES.duration - TIMES.renew_deadline
        ends.append(now() + first.lease.time_left())
        await asyncio.sleep(0.1)
    await until(lambda: second.leads)
    assert max(ends) <= server.writes[-1].at
    await first.stop()
    await second.stop()


@in_no_time
async def test_a_deleted_lease_is_made_again_by_its_holder_and_by_nobody_else() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    await asyncio.sleep(10)
    server.delete()
    await asyncio.sleep(30)
    assert server.writes[-1].holder == "a"
    assert not second.log
    assert len(first.log) == 1
    await second.stop()
    await first.stop()


@in_no_time
async def test_a_lease_made_anew_by_somebody_else_is_not_free_before_the_holder_has_run_out() -> None:
    server = Server()
    first = await led(server)
    second = Candidate(server, "b")
    await asyncio.sleep(10)
    first.wire.mode = "frozen"
    server.delete()
    server.store({"metadata": {"name": "l", "uid": "u2"}, "spec": {}})
    await until(lambda: second.leads)
    assert not first.leads
    first.wire.mode = "fine"
    await second.stop()
    await first.stop()


@in_no_time
async def test_a_foreign_edit_does_not_cost_the_lease_and_is_kept() -> None:
    server = Server()
    first = await led(server)
    await asyncio.sleep(1)
    server.edit({"metadata": {"annotations": {"seen": "true"}}})
    await asyncio.sleep(30)
    assert len(first.log) == 1
    assert server.lease
    assert server.lease["metadata"]["annotations"] == {"seen": "true"}
    await first.stop()


@in_no_time
async def test_a_lease_taken_by_force_is_lost_as_soon_as_that_is_seen() -> None:
    server = Server()
    first = await led(server)
    server.edit({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}})
    assert await until(lambda: not first.leads) <= 6
    await until(lambda: first.times("ends"))
    await first.stop()
    assert server.writes[-1].holder == "thief"


@pytest.mark.parametrize("wrong", [{"duration": 10}, {"renew_deadline": 2.4}, {"retry": 9}])
def test_times_that_do_not_fence_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="defaults are 15, 10, 2"):
        LeaseTimes(**wrong)

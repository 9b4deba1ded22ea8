"""Others write the Lease too: they delete it, create it again, edit it, take it by force."""

import asyncio

from tests.product.kube.lease_world import Candidate, Server, led, until
from tests.product.kube.virtual_time import in_no_time


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
    assert server.lease is not None
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

"""Candidates under random trouble: never two leaders, and in the end one."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import share
from tests.product.kube.lease_world import Candidate, Server, Write, until
from tests.product.kube.virtual_time import run

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
        assert not (write.holder and others), f"{write.holder} takes the Lease while {others} may write"

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
    assert [len(one.times("starts")) for one in candidates] == [len(one.times("ends")) for one in candidates]


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

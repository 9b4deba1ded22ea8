"""A large batch of deletions: what is decided once more, and when, while it is under way."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import pytest

from mpijob_elastic.act import writer
from mpijob_elastic.act.leader_writer import for_each
from mpijob_elastic.act.writer import Confirmed, Outdated, sure_until
from mpijob_elastic.decide.actions import DeleteWorkers, Removal
from mpijob_elastic.kube import errors
from mpijob_elastic.model.job import JobView
from tests.builders import job, worker
from tests.doubles.api import refused
from tests.doubles.direct import DirectClient, Sent
from tests.product.act.writes import NOTE, Nothing, Taken, writer_of
from tests.product.kube.virtual_time import in_no_time

REMOVALS = tuple(
    Removal(worker=worker(index), outcome="drained", note=NOTE) for index in reversed(range(2, 100))
)
# Seconds.
DELETION = READING = 0.05
WANTED_AGAIN_AT = 0.3


class Server:
    """Takes its time for each deletion; refuses some pods, and answers none once it is away."""

    def __init__(
        self, *, refuses: frozenset[str] = frozenset(), by: int = 409, away: bool = False
    ) -> None:
        self.asked: list[tuple[str, float]] = []
        self.deleted: list[str] = []
        self.busy = self.most_busy = 0
        self._refuses, self._by, self._away = refuses, by, away

    async def answer(self, sent: Sent) -> object:
        self.asked.append((sent.name, asyncio.get_running_loop().time()))
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        await asyncio.sleep(DELETION)
        self.busy -= 1
        if self._away:
            raise errors.Unreachable("away")
        if sent.name in self._refuses:
            raise refused(self._by, "", "no")
        self.deleted.append(sent.name)
        return {"kind": "Status", "status": "Success"}


class Live(Nothing):
    """Reads the job live, which takes time as well; `holds` says which of the removals still hold."""

    def __init__(self, holds: Callable[[Removal], bool]) -> None:
        self.reads = 0
        self._holds = holds

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        now = asyncio.get_running_loop().time
        began = now()
        await asyncio.sleep(READING)
        self.reads += 1
        sure = [removal for removal in action.removals if self._holds(removal)]
        return Confirmed(removals=sure, until=sure_until(began=began, ended=now()))


async def delete(server: Server, live: Live) -> None:
    acts = writer_of(DirectClient(server.answer), Taken(), live)
    await acts.perform(job(100, replicas=2), DeleteWorkers(removals=REMOVALS))


@in_no_time
async def test_workers_wanted_again_during_a_large_scale_in_stay() -> None:
    loop = asyncio.get_running_loop()
    server = Server()
    with suppress(Outdated):
        await delete(server, Live(lambda _: loop.time() < WANTED_AGAIN_AT))
    late = [name for name, at in server.asked if at >= WANTED_AGAIN_AT]
    assert len(late) <= 2 * writer.DELETIONS_AT_ONCE, (
        f"{len(late)} were deleted although wanted again"
    )


@in_no_time
async def test_all_that_stay_surplus_go_highest_first_and_a_few_at_once() -> None:
    server, live = Server(), Live(lambda _: True)
    await delete(server, live)
    asked = [name for name, _ in server.asked]
    assert asked == [removal.worker.name for removal in REMOVALS]
    assert sorted(server.deleted) == sorted(asked)
    assert server.most_busy == writer.DELETIONS_AT_ONCE
    alone = DELETION * math.ceil(len(REMOVALS) / writer.DELETIONS_AT_ONCE)
    assert asyncio.get_running_loop().time() <= 2 * alone, (
        "reading live takes at most half of the time"
    )
    assert live.reads > 1


@in_no_time
async def test_pods_that_changed_meanwhile_or_that_a_policy_keeps_hold_no_other_up() -> None:
    some = frozenset(removal.worker.name for removal in REMOVALS[::10])
    for by, error, match in [
        (409, Outdated, f"^{len(some)} workers"),
        (403, errors.Forbidden, "no"),
    ]:
        server = Server(refuses=some, by=by)
        with pytest.raises(error, match=match):
            await delete(server, Live(lambda _: True))
        assert len(server.deleted) == len(REMOVALS) - len(some)


async def test_a_write_to_one_pod_that_is_refused_holds_no_other_up() -> None:
    written = []

    async def write(pod: int) -> None:
        written.append(pod)
        if pod in (2, 3):
            raise refused(403, "Forbidden", f"not {pod}")
        if pod == 5:
            raise errors.Unreachable("away")

    assert [str(error)[-5:] for error in await for_each(deque(range(5)), write)] == [
        "not 2",
        "not 3",
    ]
    assert written == [*range(5)]
    with pytest.raises(errors.Unreachable):
        await for_each(deque([5, 6]), write)
    assert written[5:] == [5]


@in_no_time
async def test_a_server_that_is_away_is_not_asked_for_each_worker() -> None:
    live = Live(lambda _: True)
    with pytest.raises(errors.Unreachable):
        await delete(Server(away=True), live)
    assert live.reads == 1

"""A large batch of deletions: what is decided once more, and when, while it is under way."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import writer
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.decide.actions import DeleteWorkers, Note, Removal
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job, worker
from tests.product.act.test_deleting import Nothing, Taken, ends_nothing
from tests.product.kube.virtual_time import in_no_time

NOTE = Note(reason="SurplusDeleted", message="it is surplus")
REMOVALS = tuple(Removal(worker=worker(index), outcome="drained", note=NOTE) for index in reversed(range(2, 100)))
# Seconds.
DELETION = READING = 0.05
WANTED_AGAIN_AT = 0.3


class Server:
    """Takes its time for each deletion; refuses the pods that have changed, and answers none once it is away."""

    def __init__(self, *, changed: frozenset[str] = frozenset(), away: bool = False) -> None:
        self.asked: list[tuple[str, float]] = []
        self.deleted: list[str] = []
        self.busy = self.most_busy = 0
        self._changed, self._away = changed, away

    async def delete_object(self, path: str, **_: object) -> bytes:
        name = path.rpartition("/")[2]
        self.asked.append((name, asyncio.get_running_loop().time()))
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        await asyncio.sleep(DELETION)
        self.busy -= 1
        if self._away:
            raise errors.Unreachable("away")
        if name in self._changed:
            raise errors.Conflict(status=409, reason="Conflict", message="it has changed")
        self.deleted.append(name)
        return b'{"kind": "Status", "status": "Success"}'


class Live(Nothing):
    """Reads the job live, which takes time as well; `holds` says which of the removals still hold."""

    def __init__(self, holds: Callable[[Removal], bool]) -> None:
        self.reads = 0
        self._holds = holds

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        await asyncio.sleep(READING)
        self.reads += 1
        return [removal for removal in action.removals if self._holds(removal)]


async def delete(server: Server, live: Live) -> None:
    metrics = Metrics(CollectorRegistry())
    gate = Gate(cast("ApiWriter", server), time_left=lambda: math.inf, metrics=metrics)
    events = Events(gate, metrics=metrics, instance="test", now=lambda: NOW, random=Random(1))
    acts = Writer(gate, Taken(), recheck=live, begin_to_end=ends_nothing, events=events, metrics=metrics)
    await acts.perform(job(100, replicas=2), DeleteWorkers(removals=REMOVALS))


@in_no_time
async def test_workers_wanted_again_during_a_large_scale_in_stay() -> None:
    loop = asyncio.get_running_loop()
    server, live = Server(), Live(lambda _: loop.time() < WANTED_AGAIN_AT)
    with suppress(Outdated):
        await delete(server, live)
    late = [name for name, at in server.asked if at >= WANTED_AGAIN_AT]
    assert len(late) <= 2 * writer.DELETIONS_AT_ONCE, f"{len(late)} were deleted although wanted again"


@in_no_time
async def test_all_that_stay_surplus_go_highest_first_and_a_few_at_once() -> None:
    server, live = Server(), Live(lambda _: True)
    await delete(server, live)
    asked = [name for name, _ in server.asked]
    assert asked == [removal.worker.name for removal in REMOVALS]
    assert sorted(server.deleted) == sorted(asked)
    assert server.most_busy == writer.DELETIONS_AT_ONCE


@in_no_time
async def test_reading_live_takes_at_most_half_of_the_time() -> None:
    live = Live(lambda _: True)
    loop = asyncio.get_running_loop()
    await delete(Server(), live)
    alone = DELETION * math.ceil(len(REMOVALS) / writer.DELETIONS_AT_ONCE)
    assert loop.time() <= 2 * alone
    assert live.reads > 1


@in_no_time
async def test_a_pod_that_changed_meanwhile_holds_no_other_up() -> None:
    changed = frozenset(removal.worker.name for removal in REMOVALS[::10])
    server = Server(changed=changed)
    with pytest.raises(Outdated, match=f"^{len(changed)} workers"):
        await delete(server, Live(lambda _: True))
    assert len(server.deleted) == len(REMOVALS) - len(changed)


@in_no_time
async def test_a_server_that_is_away_is_not_asked_for_each_worker() -> None:
    live = Live(lambda _: True)
    with pytest.raises(errors.Unreachable):
        await delete(Server(away=True), live)
    assert live.reads == 1

"""Events come through short trouble, once each, and long or lasting trouble holds nothing up."""

import asyncio
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import events
from mpijob_elastic.act.events import Events
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.kube.backoff import Backoff
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Fault, Reset
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import gate_of

NOTE = Note(reason="ScaledIn", message="3 to 2")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BACKOFF", Backoff(first=0.001, longest=0.002))


async def send(client: ApiWriter) -> None:
    """Have one Event sent, or given up."""
    metrics = Metrics(CollectorRegistry())
    sender = Events(gate_of(client, metrics), metrics=metrics, instance="test", now=lambda: NOW, random=Random(1))
    sender.emit(job(2), NOTE)
    sending = asyncio.create_task(sender.run())
    await sender.flush()
    sending.cancel()


@pytest.mark.parametrize(
    "fault", [Reset(), Reset(after=True), Answer(status=503), Answer(status=429)], ids=["lost", "unheard", "503", "429"]
)
async def test_short_trouble_loses_no_event_and_makes_no_second_one(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, fault: Fault
) -> None:
    with proxy.inject(fault, times=2):
        await send(client)
    assert [event["reason"] for event in api.objects.values()] == ["ScaledIn"]


@pytest.mark.parametrize(
    ("fault", "asked"),
    [(Answer(status=403, reason="Forbidden"), 1), (Answer(status=503), events.ATTEMPTS)],
    ids=["refused", "busy for long"],
)
async def test_an_event_is_given_up_where_trying_is_of_no_use(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, fault: Fault, asked: int
) -> None:
    with proxy.inject(fault):
        await send(client)
    assert api.objects == {}
    assert len(proxy.requests) == asked

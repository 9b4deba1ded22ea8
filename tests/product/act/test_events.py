"""Events come through short trouble, once each, and long or lasting trouble holds nothing up."""

from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import events
from mpijob_elastic.act.events import Events
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Fault, Reset
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import gate_of
from tests.product.kube.watched import running

NOTE = Note(reason="ScaledIn", message="3 to 2")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BACKOFF", Backoff(first=0.001, longest=0.002))


@pytest.mark.parametrize(
    ("fault", "times", "told", "asked"),
    [
        pytest.param(Reset(), 2, 1, 3, id="lost"),
        pytest.param(
            Reset(after=True), 2, 1, 3, id="unheard, but there, so that another is refused"
        ),
        pytest.param(Answer(status=503), 2, 1, 3, id="busy for short"),
        pytest.param(Answer(status=429), 2, 1, 3, id="told to wait"),
        pytest.param(Answer(status=403, reason="Forbidden"), None, 0, 1, id="refused"),
        pytest.param(Answer(status=503), None, 0, events.ATTEMPTS, id="busy for long"),
    ],
)
async def test_an_event_is_sent_once_or_given_up(
    api: TinyApi,
    proxy: FaultProxy,
    client: ApiWriter,
    fault: Fault,
    times: int | None,
    told: int,
    asked: int,
) -> None:
    metrics = Metrics(CollectorRegistry())
    sender = Events(gate_of(client, metrics), instance="test", now=lambda: NOW, random=Random(1))
    with proxy.inject(fault, times=times):
        sender.emit(job(2), NOTE)
        async with running(sender.run()):
            await sender.flush()
    assert [event["reason"] for event in api.objects.values()] == ["ScaledIn"] * told
    assert len(proxy.requests) == asked


async def test_an_event_holds_no_more_text_than_the_api_takes(
    api: TinyApi, client: ApiWriter
) -> None:
    sender = Events(
        gate_of(client, Metrics(CollectorRegistry())),
        instance="test",
        now=lambda: NOW,
        random=Random(1),
    )
    sender.emit(job(2), Note(reason="ScaledIn", message="x" * 2**20))
    async with running(sender.run()):
        await sender.flush()
    [event] = api.objects.values()
    assert len(event["message"]) == events.LONGEST_MESSAGE

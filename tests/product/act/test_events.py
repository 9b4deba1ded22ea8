"""Events come through short trouble, once each, and long or lasting trouble holds nothing up."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import events
from mpijob_elastic.act.events import Events
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job
from tests.doubles.api import TinyApi
from tests.doubles.direct import DirectClient, Sent
from tests.faults.faults import Answer, Fault, Reset
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.act.writes import leader_writer_of
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
    sender = Events(
        leader_writer_of(client, metrics), instance="test", now=lambda: NOW, random=Random(1)
    )
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
        leader_writer_of(client, Metrics(CollectorRegistry())),
        instance="test",
        now=lambda: NOW,
        random=Random(1),
    )
    sender.emit(job(2), Note(reason="ScaledIn", message="x" * 2**20))
    async with running(sender.run()):
        await sender.flush()
    [event] = api.objects.values()
    assert len(event["message"]) == events.LONGEST_MESSAGE


class Server:
    """An API server that limits the Events of a namespace or of an object, and knows who it let wait."""

    def __init__(self, *, limits: Callable[[Sent], bool], hangs: bool = False) -> None:
        self.limits, self.hangs = limits, hangs
        self.taken: list[str] = []
        self.under_way = self.most_under_way = 0

    async def answer(self, sent: Sent) -> object:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(0)
            if self.limits(sent):
                if self.hangs:
                    await asyncio.Event().wait()
                raise errors.Throttled(status=429, reason="TooManyRequests", message="limit")
            about = sent.body["involvedObject"]
            self.taken.append(f"{about['namespace']}/{about['name']} {sent.body['reason']}")
        finally:
            self.under_way -= 1
        return {}


def sending(server: Server) -> Events:
    leader_writer = leader_writer_of(DirectClient(server.answer), Metrics(CollectorRegistry()))
    return Events(leader_writer, instance="test", now=lambda: NOW, random=Random(1))


def note(number: int) -> Note:
    return Note(reason=f"R{number}", message="m")


def on(namespace: str, name: str = "j") -> Identity:
    return Identity(namespace=namespace, name=name, uid="u", resource_version="1")


def of(namespace: str) -> Callable[[Sent], bool]:
    return lambda sent: sent.path == EVENTS.path(namespace)


def about(name: str) -> Callable[[Sent], bool]:
    return lambda sent: sent.body["involvedObject"]["name"] == name


@pytest.fixture
def _for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused waits longer than any test."""
    monkeypatch.setattr(events, "BACKOFF", Backoff(first=1000.0, longest=1000.0))


@pytest.mark.usefixtures("_for_ever")
@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("jobs", [1, 40])
async def test_a_namespace_whose_events_are_limited_delays_no_other(jobs: int, hangs: bool) -> None:
    server = Server(limits=of("flooded"), hangs=hangs)
    sender = sending(server)
    for number in range(200):
        sender.emit_on(MPI_JOBS, on("flooded", f"j{number % jobs}"), note(number))
    for number in range(3):
        sender.emit_on(MPI_JOBS, on("quiet"), note(number))
    async with running(sender.run()):
        await eventually(lambda: len(server.taken) == 3)
    assert server.taken == ["quiet/j R0", "quiet/j R1", "quiet/j R2"]


@pytest.mark.usefixtures("_for_ever")
async def test_a_job_whose_events_are_limited_delays_no_other_of_its_namespace() -> None:
    server = Server(limits=about("flaps"))
    sender = sending(server)
    for number in range(100):
        sender.emit_on(MPI_JOBS, on("team", "flaps"), note(number))
    sender.emit_on(MPI_JOBS, on("team"), note(0))
    async with running(sender.run()):
        await eventually(lambda: server.taken == ["team/j R0"])


@pytest.mark.usefixtures("_for_ever")
@pytest.mark.parametrize("jobs", [1, events.MOST_WAITING])
async def test_where_too_many_wait_the_namespace_with_most_of_them_loses_its_newest(
    jobs: int,
) -> None:
    server = Server(limits=of("flooded"))
    sender = sending(server)
    for number in range(2 * events.MOST_WAITING):
        sender.emit_on(MPI_JOBS, on("flooded", f"j{number % jobs}"), note(number))
    async with running(sender.run()):
        for number in range(20):
            sender.emit_on(MPI_JOBS, on("quiet"), note(number))
        await eventually(lambda: len(server.taken) == 20)
        server.limits = lambda _: False
    assert server.taken == [f"quiet/j R{number}" for number in range(20)]
    async with running(sender.run()):
        await sender.flush()
    kept = [line for line in server.taken if line.startswith("flooded")]
    # What was tried when the sender stopped is lost, as any Event that a stopping leader has sent.
    tried = events.OBJECTS_AT_ONCE if jobs > 1 else 1
    assert len(kept) == events.MOST_WAITING - 20 - tried
    numbers = {int(line.split("R")[1]) for line in kept}
    assert max(numbers) == events.MOST_WAITING - 21


async def test_events_of_an_object_come_in_order_also_after_trouble_and_few_at_once() -> None:
    answers = Random(1)
    server = Server(limits=lambda _: answers.random() < 0.3)
    sender = sending(server)
    for number in range(300):
        sender.emit_on(MPI_JOBS, on(f"n{number % 30}"), note(number))
    async with running(sender.run()):
        await sender.flush()
    for index in range(30):
        numbers = [
            int(line.split("R")[1]) for line in server.taken if line.startswith(f"n{index}/")
        ]
        assert numbers == sorted(numbers)
        assert len(numbers) > 8
    assert 1 < server.most_under_way <= events.OF_ALL


async def test_a_new_leader_sends_what_the_last_run_had_not_begun() -> None:
    server = Server(limits=of("flooded"), hangs=True)
    sender = sending(server)
    for number in range(3):
        sender.emit_on(MPI_JOBS, on("flooded"), note(number))
    async with running(sender.run()):
        await eventually(lambda: server.under_way == 1)
    server.limits = lambda _: False
    async with running(sender.run()):
        await sender.flush()
    assert server.taken == ["flooded/j R1", "flooded/j R2"]

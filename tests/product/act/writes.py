"""A writer of a controller beside doubles: what holds live, what the caches take in, what is told."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.capability_writes import CapabilityWriter
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.act.writer import Confirmed, Writer
from mpijob_elastic.decide.actions import (
    Action,
    DeleteWorkers,
    EndExecs,
    Note,
    Ungate,
)
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW
from tests.doubles.api import Object, TinyApi
from tests.faults.faults import Fault, Request

NOTE = Note(reason="Because", message="so")


@dataclass(frozen=True, kw_only=True)
class Answered(Fault):
    """Answers in place of the server."""

    body: Object

    async def asked(self, request: Request) -> web.Response:
        return web.json_response(self.body)


@dataclass
class Taken:
    """Takes in answers in place of the caches."""

    answers: list[tuple[Resource, Object]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def see(self, resource: Resource, raw: bytes) -> None:
        self.answers.append((resource, msgspec.json.decode(raw)))

    def see_gone(self, resource: Resource, namespace: str, ref: Identity) -> None:
        self.gone.append(ref.name)

    def is_served(self, resource: Resource) -> bool | None:
        return None

    def of_job(self, resource: Resource, namespace: str, name: str) -> list[object]:
        return []

    def versions(self) -> list[int]:
        """Return the versions of the objects that were taken in."""
        return [int(answer["metadata"]["resourceVersion"]) for _, answer in self.answers]


class Nothing:
    """Nothing that was decided holds live."""

    async def suspended(self, view: JobView) -> bool:
        return False

    def touched(self, view: JobView, version: str) -> None:
        """Know nothing."""

    def forget(self, job: tuple[str, str]) -> None:
        """Know nothing."""

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        return Confirmed(removals=(), until=math.inf)

    async def free(self, view: JobView, action: Ungate) -> bool:
        return False

    async def execs(self, view: JobView, action: EndExecs) -> Sequence[Exec]:
        return []

    async def due(self, view: JobView, action: Action) -> bool:
        return False


class Everything(Nothing):
    """All that was decided holds live."""

    async def suspended(self, view: JobView) -> bool:
        return True

    async def removals(self, view: JobView, action: DeleteWorkers) -> Confirmed:
        return Confirmed(removals=action.removals, until=math.inf)

    async def free(self, view: JobView, action: Ungate) -> bool:
        return True

    async def due(self, view: JobView, action: Action) -> bool:
        return True


class Told(Events):
    """Events, kept instead of sent."""

    def __init__(self, leader_writer: LeaderWriter) -> None:
        super().__init__(leader_writer, instance="test", now=lambda: NOW, random=Random(1))
        self.notes: list[str] = []

    def emit_on(self, resource: Resource, ref: Identity, note: Note) -> None:
        self.notes.append(note.reason)


def leader_writer_of(
    client: ApiWriter, metrics: Metrics, *, time_left: float = math.inf
) -> LeaderWriter:
    """Return the door of a controller that leads for so many seconds yet."""
    return LeaderWriter(client, time_left=lambda: time_left, metrics=metrics)


def writer_of(
    client: ApiWriter,
    taken: Taken,
    recheck: Nothing,
    *,
    capability_writers: Sequence[CapabilityWriter] = (),
) -> Writer:
    """Return a writer whose Events are kept, and that is to end no exec."""
    metrics = Metrics(CollectorRegistry())
    leader_writer = leader_writer_of(client, metrics)
    execs = Execs(client, now=lambda: NOW, wake=lambda *_: None)
    return Writer(
        leader_writer=leader_writer,
        seen=taken,
        recheck=recheck,
        execs=execs,
        events=Told(leader_writer),
        metrics=metrics,
        capability_writers=capability_writers,
    )


def is_there(api: TinyApi, path: str) -> None:
    """Store an object as the builders of views know it."""
    name = path.rpartition("/")[2]
    api.objects[path] = {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "7"}
    }

"""`events`: print the Events of a job and its pods, the newest last, as `kubectl events` does."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import pods, snapshot, table
from mpijob_elastic.cli.jobs.dependencies import Event, read_event
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS, PODS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.telemetry.terminal import say

HEADER = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
# Seconds between two batches of new Events, which are printed in their order.
BATCH = 0.2


@dataclass(frozen=True, kw_only=True)
class EventOwner:
    """A job whose Events are wanted."""

    #: The name of the job.
    name: str
    #: The uid of the MPIJob.
    uid: str
    #: Seconds since the epoch.
    created_at: float
    #: The uid of each of its pods, by the pod's name.
    pods: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class EventsAsked:
    """Which Events to print, and how."""

    #: The types, such as Warning; none for all.
    types: Collection[str] = ()
    #: The format.
    output: str = "table"
    #: Print the names of the columns.
    headers: bool = True
    #: Print new Events, too, until Ctrl-C.
    watch: bool = False


async def events(where: Where, job: str, asked: EventsAsked) -> None:
    """Print the Events. Raises NoSuchJob and other `errors.KubeError`."""
    async with reached(where) as (client, namespace):
        assert namespace is not None
        owner = await _owner(client, namespace, job)
        found = await list_objects(client, EVENTS.path(namespace), read_event)
        mine = chosen(found, owner, asked.types)
        if asked.output != "table":
            say(*table.serialized({"items": list(map(as_item, mine))}, asked.output))
            return
        if not mine:
            say(f"No events found in {namespace} namespace.", err=True)
        printer = EventPrinter(headers=asked.headers)
        printer.print(mine)
        if asked.watch:
            await _follow(client, namespace, owner, asked, printer)


def is_of(event: Event, owner: EventOwner) -> bool:
    """Tell whether an Event is about the job or one of its pods, and not about another object.

    Another kind of object may have the same name, and so may the objects of a deleted job.
    """
    about, job = event.involved_object, owner.name
    if about.kind == MPI_JOBS.kind:
        return about.uid == owner.uid
    is_launcher = about.name == names.launcher(job)
    is_worker = names.worker_index(about.name, job=job) is not None
    if about.kind != PODS.kind or not (is_launcher or is_worker):
        return False
    uid = owner.pods.get(about.name)
    if uid is not None and uid == about.uid:
        return True
    # Nothing tells the uid of a pod that has gone. Pods of a deleted job went before this job came.
    return (seconds(event.at) or 0.0) >= owner.created_at


def chosen(found: Iterable[Event], owner: EventOwner, types: Collection[str] = ()) -> list[Event]:
    """Return the Events of a job that have one of the types, the newest last."""
    wanted = {one.lower() for one in types}
    mine = (event for event in found if is_of(event, owner))
    return sorted(
        (event for event in mine if not wanted or event.type.lower() in wanted),
        key=lambda event: (seconds(event.at) or 0.0, event.metadata.name),
    )


def as_item(event: Event) -> dict[str, object]:
    """Return an Event for programs."""
    return {
        "at": event.at,
        "about": event.involved_object.name,
        "type": event.type,
        "reason": event.reason,
        "message": event.words,
        "count": event.count or 1,
    }


class EventPrinter:
    """Prints Events, each once for each time that it was seen."""

    def __init__(self, *, headers: bool) -> None:
        self._headers = headers
        self._widths: list[int] = []
        self._printed: set[tuple[str, str, int | None]] = set()

    def print(self, found: Iterable[Event]) -> None:
        """Print the Events that were not printed yet; the names of the columns stand first."""
        new = {(event.metadata.name, event.at, event.count): event for event in found}
        fresh = [event for key, event in new.items() if key not in self._printed]
        if not fresh:
            return
        self._printed |= new.keys()
        now = datetime.now(UTC)
        rows = [row(event, now=now) for event in fresh]
        headers, self._headers = self._headers, False
        self._widths, lines = table.aligned([HEADER, *rows] if headers else rows, self._widths)
        say(*lines)


def row(event: Event, *, now: datetime) -> tuple[str, ...]:
    """Return the cells of an Event at a time."""
    about = event.involved_object
    kind = about.kind.lower()
    return _seen(event, now), event.type, event.reason, f"{kind}/{about.name}", event.words


def _seen(event: Event, now: datetime) -> str:
    """Return when an Event was seen last, and how often: `5s (x3 over 2m)`."""
    last, first = _age(event.at, now), _age(event.first_timestamp or "", now)
    if (event.count or 1) < 2 or not first:
        return last or "<unknown>"
    return f"{last} (x{event.count} over {first})"


def _age(at: str, now: datetime) -> str:
    moment = seconds(at)
    return "" if moment is None else table.span(now.timestamp() - moment)


async def _owner(client: ApiReader, namespace: str, job: str) -> EventOwner:
    """Return a job with its pods. Raises NoSuchJob and other `errors.KubeError`."""
    found = await pods.find_job(client, namespace, job)
    seen = await list_objects(
        client, PODS.path(namespace), snapshot.read_pod, selector=names.pod_selector(job)
    )
    uids = {pod.metadata.name: pod.metadata.uid for pod in seen}
    created_at = found.facts.created_at
    return EventOwner(name=job, uid=found.metadata.uid, created_at=created_at, pods=uids)


async def _follow(
    client: ApiReader,
    namespace: str,
    owner: EventOwner,
    asked: EventsAsked,
    printer: EventPrinter,
) -> None:
    """Print new Events, without an end. Raises errors.Forbidden without the right to watch them."""
    changed = asyncio.Event()
    cache = WatchCache(
        client,
        EVENTS,
        decode=read_event,
        on_change=lambda _old, _new: changed.set(),
        random=Random(),  # noqa: S311 - jitter, no secret
        namespace=namespace,
        ends_forbidden=True,
    )
    running = asyncio.create_task(cache.run())
    running.add_done_callback(lambda _: changed.set())
    try:
        while not running.done():
            await changed.wait()
            changed.clear()
            printer.print(chosen(cache.store.values(), owner, asked.types))
            await asyncio.sleep(BATCH)
        await running
    finally:
        running.cancel()

"""Events on the MPIJob, for users.

They are sent beside the work, so a slow or refused Event never delays a write. Nor does an Event of
one namespace or object delay those of another.

They are core/v1 Events like those of the operator, so `kubectl describe mpijob` shows both
(https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/). Each has a name
of its own, so sending it again after a lost answer creates no second Event.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from random import Random
from typing import NamedTuple
from uuid import uuid4

from mpijob_elastic import names
from mpijob_elastic.act.leader_writer import LeaderWriter, NotLeader
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS, Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import timestamp

log = logging.getLogger(__name__)

# If more Events than this wait, the API server is refusing them: the namespace of which most Events
# wait loses its newest, which is logged.
MOST_WAITING = 1000
# Objects of one namespace whose Events are tried at the same time.
OBJECTS_AT_ONCE = 8
# Requests that are under way at once: of one namespace, and of all.
OF_ONE, OF_ALL = 2, 8
# The API's limit for an Event's message.
LONGEST_MESSAGE = 1024
# A short outage loses no Event; after about 15 s the Events that wait are of more use than the
# Event that is tried.
ATTEMPTS = 6
BACKOFF = Backoff(first=0.5, longest=8.0)

Body = dict[str, object]


class Lane(NamedTuple):
    """The object that Events are about: its Events are sent one after the other."""

    namespace: str
    kind: str
    name: str


@dataclass(eq=False)
class Namespace:
    """The Events of a namespace."""

    #: How many of its Events wait or are tried.
    waiting: int = 0
    #: The turns of its objects; an object keeps its turn while its first Event is tried.
    objects: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, OBJECTS_AT_ONCE))
    #: The turns of its requests.
    requests: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, OF_ONE))


@dataclass(eq=False)
class Events:
    """Queues notes at once; `run` sends them as Events, those of an object in order.

    An admission plugin may limit the Events of a namespace or of an object, as EventRateLimit does
    (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#eventratelimit).
    So the Events of each object wait for themselves, and those of each namespace do.
    """

    leader_writer: LeaderWriter
    _: KW_ONLY
    instance: str
    now: Callable[[], float]
    random: Random
    #: The Events that wait, by the object that they are about.
    _lanes: dict[Lane, deque[Body]] = field(default_factory=dict, init=False)
    #: The objects whose first Event is tried.
    _tried: set[Lane] = field(default_factory=set, init=False)
    #: The objects whose Events no task sends yet.
    _new: asyncio.Queue[Lane] = field(default_factory=asyncio.Queue, init=False)
    #: The namespaces of Events that wait.
    _namespaces: dict[str, Namespace] = field(default_factory=dict, init=False)
    _requests: asyncio.Semaphore = field(
        default_factory=partial(asyncio.Semaphore, OF_ALL), init=False
    )
    #: Set each time that all Events of an object are sent or have failed.
    _done: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def emit(self, view: JobView, note: Note) -> None:
        """Queue `note` as an Event on the job."""
        self.emit_on(MPI_JOBS, view.ref, note)

    def emit_on(self, resource: Resource, ref: Identity, note: Note) -> None:
        """Queue `note` as an Event on an object."""
        waiting = sum(one.waiting for one in self._namespaces.values())
        if waiting >= MOST_WAITING and not self._made_room(ref.namespace):
            log.warning("Event %s dropped: too many wait", note.reason)
            return
        lane = Lane(ref.namespace, resource.plural, ref.name)
        if lane not in self._lanes:
            self._lanes[lane] = deque()
            self._new.put_nowait(lane)
        self._lanes[lane].append(self._event(resource, ref, note))
        self._namespaces.setdefault(ref.namespace, Namespace()).waiting += 1

    async def run(self) -> None:
        """Send Events until cancelled."""
        async with asyncio.TaskGroup() as senders:
            while True:
                lane = await self._new.get()
                senders.create_task(self._send_all(lane))

    async def flush(self) -> None:
        """Wait until every queued Event is sent or has failed."""
        while self._lanes:
            self._done.clear()
            await self._done.wait()

    def _made_room(self, namespace: str) -> bool:
        """Drop an Event of the fullest namespace; return False if that is `namespace` itself."""
        counts = {name: one.waiting for name, one in self._namespaces.items()}
        fullest = max(counts, key=lambda name: counts[name])
        if counts[fullest] <= counts.get(namespace, 0):
            return False
        lanes = [
            lane
            for lane, events in self._lanes.items()
            if lane.namespace == fullest and len(events) > (lane in self._tried)
        ]
        if not lanes:
            return False
        longest = max(reversed(lanes), key=lambda lane: len(self._lanes[lane]))
        event = self._lanes[longest].pop()
        self._count_down(fullest)
        log.warning("Event %s dropped: too many wait in %s", event["reason"], fullest)
        return True

    def _count_down(self, namespace: str) -> None:
        self._namespaces[namespace].waiting -= 1
        if not self._namespaces[namespace].waiting:
            del self._namespaces[namespace]

    async def _send_all(self, lane: Lane) -> None:
        """Send the Events of an object until none waits; a cancellation leaves the rest."""
        events = self._lanes[lane]
        try:
            while events:
                await self._send_first(lane, events)
        finally:
            if events:
                self._new.put_nowait(lane)
            else:
                del self._lanes[lane]
            self._done.set()

    async def _send_first(self, lane: Lane, events: deque[Body]) -> None:
        namespace = self._namespaces[lane.namespace]
        async with namespace.objects:
            if not events:
                return  # dropped meanwhile
            self._tried.add(lane)
            try:
                await self._send(lane.namespace, namespace, events[0])
            except (errors.KubeError, NotLeader) as error:
                log.warning("Event %s not sent: %s", events[0]["reason"], error)
            finally:
                self._tried.discard(lane)
                events.popleft()
                self._count_down(lane.namespace)

    async def _send(self, name: str, namespace: Namespace, event: Body) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with namespace.requests, self._requests:
                    await self.leader_writer.create_object(EVENTS, namespace=name, body=event)
            except errors.AlreadyExists:
                return
            except errors.KubeError as error:
                if attempt == ATTEMPTS or not _may_pass(error):
                    raise
                await asyncio.sleep(BACKOFF.delay(attempt, self.random))
            else:
                return

    def _event(self, resource: Resource, ref: Identity, note: Note) -> Body:
        at = timestamp(self.now())
        message = (
            note.message
            if len(note.message) <= LONGEST_MESSAGE
            else note.message[: LONGEST_MESSAGE - 1] + "…"
        )
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{ref.name[:200]}.{uuid4().hex[:16]}",
                "namespace": ref.namespace,
            },
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "namespace": ref.namespace,
                "name": ref.name,
                "uid": ref.uid,
            },
            "type": "Warning" if note.warning else "Normal",
            "reason": note.reason,
            "message": message,
            "source": {"component": names.PROGRAM},
            "reportingComponent": names.PROGRAM,
            "reportingInstance": self.instance,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }


def _may_pass(error: errors.KubeError) -> bool:
    """Tell whether an Event is sent again.

    An Event that admission takes too long for would keep all other Events waiting each time.
    """
    return errors.may_pass(error) and not isinstance(error, errors.TooSlow)

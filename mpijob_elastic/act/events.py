"""Events on the MPIJob, for users.

They are sent beside the work, so a slow or refused Event never delays a write.

They are core/v1 Events like those of the operator, so `kubectl describe mpijob` shows both
(https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/). Each has a name
of its own, so sending it again after a lost answer creates no second Event.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from random import Random
from uuid import uuid4

from mpijob_elastic import names
from mpijob_elastic.act.gate import Gate, NotLeader
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS, Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.wire import timestamp

log = logging.getLogger(__name__)

# If more Events than this wait, the API server is refusing them; the newest are dropped and logged.
MOST_WAITING = 1000
# The API's limit for an Event's message.
LONGEST_MESSAGE = 1024
# A short outage loses no Event; after about 15 s the Events that wait are of more use than the
# Event that is tried.
ATTEMPTS = 6
BACKOFF = Backoff(first=0.5, longest=8.0)


@dataclass(eq=False)
class Events:
    """Queues notes at once; `run` sends them in order, as Events."""

    gate: Gate
    _: KW_ONLY
    instance: str
    now: Callable[[], float]
    random: Random
    _waiting: asyncio.Queue[tuple[str, dict[str, object]]] = field(
        default_factory=partial(asyncio.Queue, MOST_WAITING), init=False
    )

    def emit(self, view: JobView, note: Note) -> None:
        """Queue `note` as an Event on the job."""
        self.emit_on(MPI_JOBS, view.ref, note)

    def emit_on(self, resource: Resource, ref: Identity, note: Note) -> None:
        """Queue `note` as an Event on an object."""
        try:
            self._waiting.put_nowait((ref.namespace, self._event(resource, ref, note)))
        except asyncio.QueueFull:
            log.warning("Event %s dropped: too many wait", note.reason)

    async def run(self) -> None:
        """Send Events until cancelled."""
        while True:
            namespace, event = await self._waiting.get()
            try:
                await self._send(namespace, event)
            except (errors.KubeError, NotLeader) as error:
                log.warning("Event %s not sent: %s", event["reason"], error)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until every queued Event is sent or has failed."""
        await self._waiting.join()

    async def _send(self, namespace: str, event: dict[str, object]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self.gate.create_object(EVENTS, namespace=namespace, body=event)
            except errors.AlreadyExists:
                return
            except errors.KubeError as error:
                if attempt == ATTEMPTS or not errors.may_pass(error):
                    raise
                await asyncio.sleep(BACKOFF.delay(attempt, self.random))
            else:
                return

    def _event(self, resource: Resource, ref: Identity, note: Note) -> dict[str, object]:
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

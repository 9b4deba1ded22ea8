"""Sends Events, one after another, beside the syncs that cause them (client-go 0.15's record package)."""

import asyncio
import logging
from typing import Any

from lab.operator import clock
from lab.operator.correlator import Correlator, Occurrence
from lab.operator.job import MPIJob
from lab.operator.kinds import EVENTS, MPI_JOBS
from lab.operator.status import Event
from lab.operator.writes import Writer
from mpijob_elastic.kube.errors import ApiError, NotFound, Unreachable

COMPONENT = "mpi-job-controller"
WAITING = 1000
TRIES = 12
PAUSE = 10.0  # seconds between two tries

log = logging.getLogger(__name__)


class Recorder:
    """Takes Events at once, and drops them while a thousand wait."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: asyncio.Queue[tuple[dict[str, Any], Event]] = asyncio.Queue(WAITING)
        self._correlator = Correlator()

    def send(self, job: MPIJob, event: Event) -> None:
        """Take an Event on a job."""
        if not self._waiting.full():
            self._waiting.put_nowait((_event_object(job, event), event))

    async def run(self) -> None:
        """Send what was taken, until cancelled."""
        while True:
            body, event = await self._waiting.get()
            new = Occurrence(name=body["metadata"]["name"], first=body["firstTimestamp"], count=1)
            now = asyncio.get_running_loop().time()
            uid = body["involvedObject"]["uid"]
            if occurrence := self._correlator.observe(event, uid=uid, new=new, now=now):
                await self._send(body, occurrence)

    async def _send(self, body: dict[str, Any], occurrence: Occurrence) -> None:
        for _ in range(TRIES):
            try:
                return await self._write(body, occurrence)
            except Unreachable:
                await asyncio.sleep(PAUSE)
            except ApiError as error:
                return log.warning("event rejected: %s", error)
        log.warning("event given up after %d tries", TRIES)
        return None

    async def _write(self, body: dict[str, Any], occurrence: Occurrence) -> None:
        metadata = {**body["metadata"], "name": occurrence.name}
        body = {**body, "metadata": metadata, "firstTimestamp": occurrence.first, "count": occurrence.count}
        if occurrence.count > 1:
            patch = {key: body[key] for key in ("count", "lastTimestamp", "message")}
            try:
                await self._writer.patch_event(metadata["namespace"], occurrence.name, patch)
            except NotFound:
                log.debug("event %s has expired and is written anew", occurrence.name)
            else:
                return
        await self._writer.create(EVENTS, metadata["namespace"], body)


def _event_object(job: MPIJob, event: Event) -> dict[str, Any]:
    now = clock.timestamp()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name}.{clock.nanoseconds():x}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": MPI_JOBS.api_version,
            "kind": MPI_JOBS.kind,
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
            "resourceVersion": job.metadata["resourceVersion"],
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }

"""Send the page its data: the JSON of `get`, `explain` and `history`, Events, the log's last lines.

Each stream has watches of its own, which end with the stream. A stream looks into pods by exec only
for the job that is shown.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import NoReturn

import msgspec

from mpijob_elastic.cli import rights
from mpijob_elastic.cli.dashboard.training import FollowedTraining, Trainings
from mpijob_elastic.cli.jobs import explain, history, job_events, report
from mpijob_elastic.cli.jobs.dependencies import Event, read_event
from mpijob_elastic.cli.jobs.explain import Evidence, Looks
from mpijob_elastic.cli.jobs.job_events import EventOwner
from mpijob_elastic.cli.jobs.live import Key, Live, check_reading, kept
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot, fetch_job
from mpijob_elastic.diagnosis.facts import Finding, Level, Look
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, Timeouts
from mpijob_elastic.kube.resources import EVENTS, PODS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.pod import Launcher

# Seconds after which an empty line shows that a stream lives.
HEARTBEAT = 2.0
# Seconds between batches of changed jobs, and between two questions for a new look.
BATCH = 0.2
# Seconds between checks of the API server, reads of the log, and reports on a job that does not
# change (deadlines pass without a change).
AGAIN = 5.0
# Seconds between looks by exec.
LOOK_AGAIN = 30.0
# The least seconds between two explanations.
APART = 2.0
# Rows that are sent together, so that the page draws them in one frame.
TOGETHER = 10
CHECK, READ_LOG = Timeouts(attempt=4.0, throttled=0.0), Timeouts(throttled=0.0)
# The most Events that are shown, the newest first.
MOST_EVENTS = 30
# The most lines and bytes of the log that are shown. A kubelet that is told both cuts the newest
# lines off, so it is told the lines alone. It counts 16 KiB of a longer line as a line.
LOG, LOG_BYTES = {"tailLines": "200"}, 65536
# Bytes of a log above which it is read seldom, and how many seconds apart: 200 lines of progress
# bars may have 3 MB.
LARGE_LOG, LARGE_LOG_AGAIN = 4 * LOG_BYTES, 30.0
NO_LOG: Mapping[str, object] = {"pod": "", "uid": "", "lines": [], "before": []}
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NOT_YET = Look(error=f"exec looks into it within {LOOK_AGAIN:.0f} s")


class Channel:
    """The parts to send, by name.

    Only the newest value of each part is kept, so that a slow reader costs no memory.

    A line is `{"part": ..., "value": ...}`. A line that equals the last line of its part is not
    sent.
    """

    def __init__(self) -> None:
        self._sent: dict[str, bytes] = {}
        self._due: dict[str, bytes] = {}
        self._changed = asyncio.Event()

    @property
    def empty(self) -> bool:
        """True if there is nothing to send."""
        return not self._due

    def put(self, part: str, value: object) -> None:
        """Send the value, unless the reader has got the same value last."""
        line = msgspec.json.encode(value)
        if self._due.get(part, self._sent.get(part)) != line:
            self._due[part] = line
            self._changed.set()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines to send, several at once, without an end."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._changed.wait()
            except TimeoutError:
                yield b"\n"
                continue
            self._changed.clear()
            due, self._due = self._due, {}
            self._sent |= due
            yield b"".join(
                b'{"part":%b,"value":%b}\n' % (msgspec.json.encode(part), line)
                for part, line in due.items()
            )


async def of_all(client: ApiReader, selection: Selection, channel: Channel) -> NoReturn:
    """Send the report on every selected job, and the findings that keep workers from training.

    Raises `errors.KubeError`.
    """
    with_role = await check_reading(client, selection)
    async with Live(client, selection, with_role=with_role) as live, asyncio.TaskGroup() as group:
        group.create_task(_check(client, channel))
        if not live.keys:
            channel.put("listed", value=True)
        while True:
            for number, key in enumerate(await live.changes(), 1):
                found = live.snapshot(key)
                channel.put("/".join(key), row(found, now=time.time()) if found else None)
                if number % TOGETHER == 0:
                    await asyncio.sleep(0)
            channel.put("listed", value=True)
            await asyncio.sleep(BATCH)


def row(snapshot: Snapshot, *, now: float) -> dict[str, object]:
    """Return the report on a job, and the findings that keep its workers from training."""
    found = explain.conclude(snapshot, Evidence(), now=now)
    findings = (*found.job, *(worker.cause for worker in found.workers))
    return {"report": report.shown(snapshot, now=now), "says": list(_troubles(findings))}


def _troubles(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield the first finding of each cause, findings of level WRONG before those of WAITING.

    Findings of other levels are left out.
    """
    for level in (Level.WRONG, Level.WAITING):
        of_cause = {
            finding.cause: finding for finding in reversed(findings) if finding.level is level
        }
        yield from reversed(of_cause.values())


async def of_job(client: ApiReader, key: Key, channel: Channel, trainings: Trainings) -> NoReturn:
    """Send the report, explanation, training, history, Events and log of a job.

    trainings: what all pages of a job share. Raises NoSuchJob and other `errors.KubeError`.
    """
    namespace, name = key
    first = await fetch_job(client, namespace, name)
    channel.put("object", identity(first))
    channel.put("report", report.shown(first, now=time.time()))  # before the watches have listed
    selection = Selection(namespace=namespace, job=name)
    # By uid, because a job that was made again under its name is another job.
    with trainings.shared((namespace, first.job.metadata.uid)) as training:
        async with (
            Live(client, selection, with_role=first.role_readable) as live,
            asyncio.TaskGroup() as group,
        ):
            shown = _ShownJob(client, live, key, channel)
            for work in (
                _check(client, channel),
                shown.explain(),
                shown.read_history(),
                shown.read_log(),
                shown.follow_events(),
                shown.follow_training(training),
            ):
                group.create_task(work)
            await shown.follow()
    raise AssertionError("endless")


class _ShownJob:
    """The job that is shown."""

    def __init__(self, client: ApiReader, live: Live, key: Key, channel: Channel) -> None:
        self._client, self._live, self._key, self._channel = client, live, key, channel
        #: Set by each report: there is something new to explain, and maybe in the history.
        self._unexplained, self._unread = asyncio.Event(), asyncio.Event()
        #: The outcome of the last reads beside the watches, None before the first.
        self._asked: Evidence | None = None
        self._look_again = 0.0
        self._looked: tuple[Looks, tuple[Exec, ...]] = ({}, ())
        self._uids: dict[str, str] = {}
        #: The pod and the start of the launcher's container whose log before a restart was read.
        self._restarted: tuple[str, float | None] | None = None
        self._before: list[str] = []
        #: What the last read of a log has sent.
        self._log_bytes = 0

    async def follow(self) -> NoReturn:
        """Send the report after each change, and every AGAIN seconds, because deadlines pass."""
        while True:
            try:
                async with asyncio.timeout(AGAIN):
                    changed = await self._live.changes()
            except TimeoutError:
                changed = [self._key]
            if self._key in changed:
                self._show()
                self._unexplained.set()
                self._unread.set()

    def _show(self) -> None:
        snapshot, now = self._live.snapshot(self._key), time.time()
        if snapshot:
            self._channel.put("object", identity(snapshot))
        self._channel.put("report", report.shown(snapshot, now=now) if snapshot else None)
        if snapshot and self._asked:
            found = explain.conclude(snapshot, self._asked, now=now)
            self._channel.put("headline", explain.headline(found))
            self._channel.put("explanation", found)

    async def explain(self) -> NoReturn:
        """Read what an explanation needs beside the watches, after each report."""
        while True:
            self._unexplained.clear()
            if snapshot := self._live.snapshot(self._key):
                try:
                    self._asked = await explain.ask(
                        self._client, snapshot, self._look(snapshot.view), look=False
                    )
                except errors.KubeError as error:
                    self._channel.put("lost", rights.in_words(error))
                self._show()
            await asyncio.sleep(APART)
            await self._unexplained.wait()

    async def read_history(self) -> NoReturn:
        """Send the history after each report, without waiting for the looks of an explanation."""
        while True:
            self._unread.clear()
            with suppress(errors.KubeError):
                self._channel.put("history", await history.read(self._client, *self._key))
            await asyncio.sleep(APART)
            await self._unread.wait()

    async def _look(self, view: JobView) -> tuple[Looks, tuple[Exec, ...]]:
        """Return the outcome of a look by exec, at most LOOK_AGAIN seconds old."""
        uids = {worker.name: worker.ref.uid for worker in view.workers}
        if time.monotonic() >= self._look_again:
            self._looked = await explain.by_exec(self._client, view)
            self._uids = uids
            self._look_again = time.monotonic() + LOOK_AGAIN if self._looked[0] else 0.0
        looks, frozen = self._looked
        same = {name for name, uid in uids.items() if self._uids.get(name) == uid}
        kept = {name: look for name, look in looks.items() if name in same}
        return ({**kept, **dict.fromkeys(uids.keys() - same, _NOT_YET)} if looks else {}), frozen

    async def follow_training(self, training: FollowedTraining) -> NoReturn:
        """Send how far the job is, and where its GPU-seconds went, after each look."""
        while True:
            snapshot = self._live.snapshot(self._key)
            if snapshot and not snapshot.fault:
                self._channel.put("training", await training.look(self._client, snapshot.view))
            await asyncio.sleep(BATCH)

    async def read_log(self) -> NoReturn:
        """Send the last lines of the launcher's log, every AGAIN seconds."""
        while True:
            snapshot = self._live.snapshot(self._key)
            pod = snapshot.view.launcher if snapshot else None
            self._channel.put("log", await self._log(pod) if pod else NO_LOG)
            await asyncio.sleep(LARGE_LOG_AGAIN if self._log_bytes > LARGE_LOG else AGAIN)

    async def _log(self, pod: Launcher) -> Mapping[str, object]:
        log = {**NO_LOG, "pod": pod.ref.name, "uid": pod.ref.uid}
        try:
            log["lines"] = await self._lines(pod, LOG)
            log["before"] = await self._lines_before(pod)
        except errors.KubeError as error:
            log["error"] = rights.missing_right(error) or getattr(error, "message", str(error))
        return log

    async def _lines(self, pod: Launcher, query: Mapping[str, str]) -> list[str]:
        """Return lines of the launcher's log. Raises `errors.KubeError`."""
        path = PODS.path(self._key[0], pod.ref.name, "log")
        containers = [pod.facts.default_container, *pod.facts.containers]
        query = {**query, "container": next(filter(None, containers), "")}
        raw = await self._client.get(path, query=query, limits=READ_LOG)
        self._log_bytes = len(raw)
        last = last_lines(raw, most=LOG_BYTES)
        return _COLOURS.sub("", last.decode(errors="replace")).splitlines()

    async def _lines_before(self, pod: Launcher) -> list[str]:
        """Return the last lines before the container restarted, read once for each start."""
        restarted = (pod.ref.uid, pod.facts.started_at)
        if self._restarted == restarted:
            return self._before
        try:
            self._before = await self._lines(pod, {**LOG, "previous": "true"})
        except (errors.NotFound, errors.Invalid):
            self._before = []  # it has not restarted
        self._restarted = restarted
        return self._before

    async def follow_events(self) -> None:
        """Send the newest Events on the job and its pods, after each change.

        Without the right to follow them the page gets the words for that.
        """
        changed, refused = asyncio.Event(), asyncio.Event()

        def refuse(refusal: errors.Forbidden) -> None:
            self._channel.put("events", {"items": [], "error": rights.in_words(refusal)})
            refused.set()
            changed.set()

        cache = WatchCache(
            self._client,
            EVENTS,
            decode=read_event,
            on_change=lambda _old, _new: changed.set(),
            random=Random(),  # noqa: S311 - jitter, no secret
            namespace=self._key[0],
            ends_forbidden=True,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(kept(cache, refuse))
            await cache.synced.wait()
            while not refused.is_set():
                changed.clear()
                snapshot = self._live.snapshot(self._key)
                mine = job_events.chosen(cache.store.values(), owner(snapshot)) if snapshot else []
                newest = list(reversed(mine))[:MOST_EVENTS]
                self._channel.put("events", {"items": list(map(shown_event, newest))})
                await changed.wait()
                await asyncio.sleep(BATCH)


def last_lines(text: bytes, *, most: int) -> bytes:
    """Return the last lines that have so many bytes together, or the end of a line with more."""
    if len(text) <= most:
        return text
    _, _, lines = text[-most - 1 :].partition(b"\n")
    return lines or text[-most:]


def identity(snapshot: Snapshot) -> dict[str, str]:
    """Return what tells a job from another of its name, and from itself before a write."""
    metadata = snapshot.job.metadata
    return {"uid": metadata.uid, "resourceVersion": metadata.resource_version}


def shown_event(event: Event) -> dict[str, object]:
    """Return an Event with its uid, because two Events may have the same words."""
    return {**job_events.as_item(event), "uid": event.metadata.uid}


def owner(snapshot: Snapshot) -> EventOwner:
    """Return the job of a snapshot as Events tell of it."""
    return EventOwner(
        name=snapshot.view.name,
        uid=snapshot.view.ref.uid,
        created_at=snapshot.job.facts.created_at,
        pods={name: pod.metadata.uid for name, pod in snapshot.pods.items()},
    )


async def _check(client: ApiReader, channel: Channel) -> NoReturn:
    """Send whether the API server answers, because a watch would notice only after a minute."""
    while True:
        try:
            await client.get("/version", limits=CHECK)
            channel.put("lost", "")
        except errors.KubeError as error:
            channel.put("lost", rights.in_words(error))
        await asyncio.sleep(AGAIN)

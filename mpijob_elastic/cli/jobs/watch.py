"""`watch`: show a job after each change, until the job has ended."""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import at_work, show, snapshot, table
from mpijob_elastic.cli.jobs.live import follow
from mpijob_elastic.cli.jobs.report import MISSING, JobReport, shown
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.escapes import printable
from mpijob_elastic.telemetry.terminal import say

# Takes a report and the changes since the report before it.
Show = Callable[[JobReport, list[str]], None]

# The most changes that are shown below the page.
RECENT = 10
# Drawings per second, because ages and countdowns move even when nothing happens.
REFRESHES = 2


async def watch(where: Where, *, job: str) -> bool:
    """Follow a job to its end; return True if the job succeeded.

    Raises NoSuchJob if the job is deleted, and other `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        first = await snapshot.fetch_job(client, namespace, job)
        show.warn(where, await at_work.check(client, now=time.time()))
        selection = Selection(namespace=namespace, job=job)
        following = follow(client, selection, with_role=first.role_readable)
        with _screen(Console(highlight=False)) as show_news:
            async with aclosing(following) as snapshots:
                return await until_end(snapshots, show_news, job=job)


async def until_end(
    snapshots: AsyncIterator[Snapshot | None], show_news: Show, *, job: str
) -> bool:
    """Show each snapshot until the job has ended; return True if the job succeeded.

    Raises NoSuchJob if the job is deleted.
    """
    last: JobReport | None = None
    uid = None
    async for found in snapshots:
        if found is None or uid not in (None, found.view.ref.uid):
            break
        uid = found.view.ref.uid
        report = shown(found, now=time.time())
        show_news(report, changes_between(last, report))
        last = report
        if found.view.facts.finished:
            return report.state == names.CONDITION_SUCCEEDED
    raise snapshot.NoSuchJob(f"MPIJob {job} was deleted")


@contextmanager
def _screen(console: Console) -> Iterator[Show]:
    """Give a live page on a terminal; elsewhere print a line for each change."""
    if not console.is_terminal:
        yield _print_lines
        return
    page = LivePage()
    with Live(
        console=console,
        get_renderable=page.render,
        refresh_per_second=REFRESHES,
        vertical_overflow="crop",
    ):
        yield page.show


def _print_lines(_: JobReport, news: list[str]) -> None:
    for line in news:
        say(f"{clock()}  {line}")


class LivePage:
    """The newest report and the last changes."""

    def __init__(self) -> None:
        self._report: JobReport | None = None
        self._recent: deque[str] = deque(maxlen=RECENT)

    def show(self, report: JobReport, news: list[str]) -> None:
        """Keep the report and its changes for the next drawing."""
        self._report = report
        self._recent.extend(f"{clock()}  {line}" for line in news)

    def render(self) -> Text:
        """Return the page."""
        if self._report is None:
            return Text("")
        lines = [*table.details(self._report, now=datetime.now(UTC)), "", "Changes:", *self._recent]
        return Text("\n".join(map(printable, lines)))


def clock() -> str:
    """Return the time of day."""
    return time.strftime("%H:%M:%S")


def changes_between(before: JobReport | None, after: JobReport) -> list[str]:
    """Return the changes in the order in which they happen; a summary for the first report."""
    if before is None:
        counts = f"ready {after.ready}, published {after.published}, draining {after.draining}"
        return [f"{after.namespace}/{after.name}: {after.state}, desired {after.desired}, {counts}"]
    return [
        *_arrow("state", before.state, after.state),
        *_arrow("desired", str(before.desired), str(after.desired)),
        *_role(before, after),
        *_workers(before, after),
        *_arrow(names.KEY_DISCOVER_HOSTS, _hosts(before), _hosts(after)),
        *_launcher(before, after),
        *(f"notice: {notice}" for notice in after.notices if notice not in before.notices),
    ]


def _arrow(name: str, before: str, after: str) -> list[str]:
    return [f"{name}: {before} → {after}"] if before != after else []


def _role(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = set(before.exec_names or ()), set(after.exec_names or ())
    if new - old:
        yield f"Role: exec allowed into {', '.join(_in_order(new - old, after))}"
    if old - new:
        yield f"Role: exec no longer allowed into {', '.join(_in_order(old - new, after))}"


def _workers(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = _conditions(before), _conditions(after)
    for pod in _in_order(old.keys() | new.keys(), after):
        yield from _arrow(pod, old.get(pod, "none"), new.get(pod, "gone"))


def _conditions(report: JobReport) -> dict[str, str]:
    return {
        worker.name: worker.phase + " Ready" * worker.ready + " draining" * bool(worker.draining)
        for worker in report.workers
        if worker.phase != MISSING
    }


def _hosts(report: JobReport) -> str:
    return ", ".join(report.hosts) or "no host"


def _launcher(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new, pod = before.launcher, after.launcher, names.launcher(after.name)
    if (old and old.phase) != (new and new.phase):
        yield f"{pod}: {old.phase if old else 'none'} → {new.phase if new else 'gone'}"
    is_news = before.hosts != after.hosts or not (old and old.refreshed)
    if new and new.refreshed and is_news:
        yield f"{pod}: {names.KEY_DISCOVER_HOSTS} refreshed"


def _in_order(pods: Iterable[str], report: JobReport) -> list[str]:
    return sorted(pods, key=lambda pod: names.worker_index(pod, job=report.name) or 0)

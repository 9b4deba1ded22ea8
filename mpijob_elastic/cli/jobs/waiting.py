"""Wait until a job is as a command wants it, and show how far it is.

The job is read again and again, with all that `get` and `explain` read, because only so the words of Kueue are known.
An API server that is away is waited for. On a terminal bars are drawn; elsewhere each step is a line, as in `watch`.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mpijob_elastic.cli.jobs import exec_probes, explain
from mpijob_elastic.cli.jobs.goals import Goal, Progress, Seen
from mpijob_elastic.cli.jobs.show import REFRESHES, clock
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob, Snapshot, fetch_job
from mpijob_elastic.decide import derive
from mpijob_elastic.explain import explain as find
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Level
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model import durations
from mpijob_elastic.telemetry.terminal import printable, say

Show = Callable[[Progress], None]

# Seconds between two looks, and how many workers lengthen that by one.
PAUSE, WORKERS_A_SECOND = 1.0, 200
_BAR = 30


async def wait(
    client: ApiReader, first: Snapshot, goal: Goal, *, seconds: float, look: bool, show: Show | None = None
) -> tuple[Progress, Seen] | None:
    """Wait for so many seconds until the goal is reached or cannot be, and return how far the job is then.

    None: the API server does not answer, so nobody knows. look: into pods, for ranks. show: takes how far it is,
    None to print it. Raises NoSuchJob where the job is deleted, and other `errors.KubeError`.
    """
    view, deadline = first.view, time.monotonic() + seconds
    with nullcontext(show) if show else _display(Console(highlight=False)) as tell:
        while True:
            last = None
            try:
                seen = await _see(client, await fetch_job(client, view.namespace, view.name), look=look)
            except NoSuchJob:
                raise NoSuchJob(f"MPIJob {view.name} was deleted") from None
            except errors.KubeError as error:
                if not errors.may_pass(error):
                    raise
                tell(Progress(stages={}, done=False, now=f"no answer of the API server: {error}", step="away"))
            else:
                if seen.snapshot.view.ref.uid != view.ref.uid:
                    raise NoSuchJob(f"MPIJob {view.name} was deleted, and another was created under its name")
                last = goal(seen), seen
                tell(last[0])
                if last[0].done or last[0].otherwise:
                    return last
            pause = PAUSE + len(view.workers) / WORKERS_A_SECOND
            if time.monotonic() + pause > deadline:
                return last
            await asyncio.sleep(pause)


async def _see(client: ApiReader, snapshot: Snapshot, *, look: bool) -> Seen:
    """Return what can be seen now. Nobody looks for ranks before all workers are listed, because no more train."""
    view, now = snapshot.view, time.time()
    found = find(view, explain.known(snapshot), now=now)
    seen = Seen(snapshot=snapshot, state=derive(view, now=now), found=found)
    if look and seen.wanted and all(worker.cause.level is Level.UNKNOWN for worker in seen.wanted):
        running = [worker for worker in view.workers if worker.running and not worker.facts.deleting]
        looks = await exec_probes.into_workers(client, view, running)
        seen = replace(seen, found=find(view, explain.known(snapshot, Facts(looks=looks)), now=now))
    return seen


@contextmanager
def _display(console: Console) -> Iterator[Show]:
    """Give bars on a terminal, elsewhere a line for each step."""
    if not console.is_terminal:
        yield _lines()
        return
    bars = Bars()
    with Live(console=console, get_renderable=bars.render, refresh_per_second=REFRESHES, transient=True):
        yield bars.show


def _lines() -> Show:
    last = Progress(stages={}, done=False)

    def show(progress: Progress) -> None:
        nonlocal last
        if (progress.stages, progress.step) != (last.stages, last.step):
            say(f"{clock()}  {progress}")
        last = progress

    return show


class Bars:
    """The newest progress as bars."""

    def __init__(self) -> None:
        self._progress = Progress(stages={}, done=False)
        self._began = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Keep it for the next drawing; while the API server is away, the bars stay."""
        self._progress = replace(progress, stages=progress.stages or self._progress.stages)

    def render(self) -> Group:
        """Return the bars."""
        table = Table.grid(padding=(0, 2))
        for name, (done, of) in self._progress.stages.items():
            bar = ProgressBar(total=of or 1, completed=done or 0, width=_BAR)
            table.add_row(name, bar, f"{'?' if done is None else done} of {of}")
        since = durations.render(round(time.monotonic() - self._began))
        return Group(table, Text(f"{since}  {printable(self._progress.now)}"))

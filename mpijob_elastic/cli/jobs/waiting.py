"""Wait until a job is as a command wants it, and show the progress in stages.

The steps are those of `explain`: a worker is done once `explain` finds nothing that the worker
waits for. If a look into the pods is impossible, a worker is done once the launcher knows it.

The job is read again and again, together with everything that `get` and `explain` read, because
only those reads show the words of Kueue. If the API server is away, the wait goes on. On a terminal
bars are drawn; elsewhere each step is a line, as in `watch`.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mpijob_elastic.cli.jobs import at_work, exec_probes, explain
from mpijob_elastic.cli.jobs.at_work import Leader
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob, Snapshot, fetch_job
from mpijob_elastic.cli.jobs.watch import REFRESHES, clock
from mpijob_elastic.decide import derive
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Explanation, Level, WorkerFinding
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model import phrases
from mpijob_elastic.telemetry.escapes import printable
from mpijob_elastic.telemetry.terminal import say

THERE = frozenset({Level.FINE, Level.UNKNOWN})
# Seconds between two looks, and the number of workers that lengthens this pause by a second.
PAUSE, WORKERS_A_SECOND = 1.0, 200
_BAR = 30
# The colours of a bar: what is missing, what is done, and all of it done. They differ on a terminal
# of 16 colours too, where rich's own colours draw a full bar as an empty one.
_MISSING, _DONE, _ALL = "bright_black", "cyan", "green"


@dataclass(frozen=True, kw_only=True)
class JobMoment:
    """A job at one moment."""

    snapshot: Snapshot
    #: What the controller would derive now.
    state: JobState
    #: What `explain` finds now.
    found: Explanation

    @property
    def wanted(self) -> list[WorkerFinding]:
        """The workers that the size asks for."""
        return [worker for worker in self.found.workers if worker.wanted]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a job towards a goal."""

    #: By name, how many are done, None where that is unknown, and of how many.
    stages: Mapping[str, tuple[int | None, int]]
    #: The goal is reached.
    done: bool
    #: What the job waits for, in words, "" for nothing.
    now: str = ""
    #: A key for `now`, which stays the same while only a count in the words changes.
    step: str = ""
    #: Why the job will not reach the goal, "" while it still may.
    otherwise: str = ""

    def __str__(self) -> str:
        counts = ", ".join(
            f"{name} {'?' if done is None else done} of {of}"
            for name, (done, of) in self.stages.items()
        )
        return f"{counts}; {self.now}" if self.now else counts


Goal = Callable[[JobMoment], Progress]
Show = Callable[[Progress], None]


async def wait(
    client: ApiReader,
    first: Snapshot,
    goal: Goal,
    *,
    seconds: float,
    look: bool,
    show: Show | None = None,
    leader: Leader | None = None,
) -> tuple[Progress, JobMoment] | None:
    """Wait until the goal is reached or out of reach; return the progress and the job then.

    seconds: the longest time to wait. None is returned if the API server does not answer at the
    end, so that the progress is unknown. look: look into pods for ranks. show: takes the progress;
    None to print it. leader: looked at too, because without a leading controller the job waits for
    one. Raises NoSuchJob if the job is deleted, and other `errors.KubeError`.
    """
    view, deadline, began = first.view, time.monotonic() + seconds, time.time()
    with nullcontext(show) if show else _display(Console(highlight=False)) as tell:
        while True:
            last = None
            try:
                found = await fetch_job(client, view.namespace, view.name)
                seen = await _see(client, found, look=look, began=began)
            except NoSuchJob:
                raise NoSuchJob(f"MPIJob {view.name} was deleted") from None
            except errors.KubeError as error:
                if not errors.may_pass(error):
                    raise
                tell(
                    Progress(
                        stages={},
                        done=False,
                        now=f"no answer from the API server: {error}",
                        step="away",
                    )
                )
            else:
                if seen.snapshot.view.ref.uid != view.ref.uid:
                    raise NoSuchJob(
                        f"MPIJob {view.name} was deleted, and another was created under its name"
                    )
                trouble = await leader.look(client) if leader else ""
                last = unled(goal(seen), trouble), seen
                tell(last[0])
                if last[0].done or last[0].otherwise:
                    return last
            pause = PAUSE + len(view.workers) / WORKERS_A_SECOND
            if time.monotonic() + pause > deadline:
                return last
            await asyncio.sleep(pause)


def unled(progress: Progress, trouble: str) -> Progress:
    """Return the progress of a job while nobody carries out changes.

    trouble: the reason, as `Leader` returns it; "" if somebody does.
    """
    if not trouble or progress.done or progress.otherwise:
        return progress
    return replace(progress, now=f"{trouble}; {at_work.ONCE}", step=trouble)


async def _see(client: ApiReader, snapshot: Snapshot, *, look: bool, began: float) -> JobMoment:
    """Return the job as it is now.

    began: when the wait for a change began, in seconds since the epoch, because the API server does
    not always tell the time of a change. Ranks are looked for only once all workers are listed,
    because a worker that is not listed does not train.
    """
    view, now = snapshot.view, time.time()
    known = explain.known(snapshot)
    known = replace(known, resized_at=max(known.resized_at, began))
    found = diagnose(view, known, now=now)
    seen = JobMoment(snapshot=snapshot, state=derive(view, now=now), found=found)
    if look and seen.wanted and all(worker.cause.level is Level.UNKNOWN for worker in seen.wanted):
        running = [
            worker for worker in view.workers if worker.running and not worker.facts.deleting
        ]
        looks = await exec_probes.into_workers(client, view, running)
        seen = replace(seen, found=diagnose(view, replace(known, looks=looks), now=now))
    return seen


def trains(seen: JobMoment, *, size: int) -> Progress:
    """Return the progress of a job towards training on `size` workers."""
    view, wanted = seen.snapshot.view, seen.wanted
    pods = [pod for name in view.wanted_names if (pod := view.worker(name))]
    stages: dict[str, tuple[int | None, int]] = {"pods": (sum(pod.ready for pod in pods), size)}
    if view.facts.queued:
        stages["quota"] = (sum(not pod.facts.gates for pod in pods), size)
    stages["host list"] = (sum(bool(worker.host) for worker in wanted), size)
    stages["ranks"] = (seen.found.training, size)
    waits = next((worker for worker in wanted if worker.cause.level not in THERE), None)
    now, step = _waits_for(seen, waits) if waits else ("", "")
    stop = seen.state.wishes.suspended_by
    return Progress(
        stages=stages,
        done=len(wanted) == size and not waits,
        now=now,
        step=step,
        otherwise=_otherwise(seen, size) or (f"{view.name} is suspended by {stop}" if stop else ""),
    )


def _waits_for(seen: JobMoment, worker: WorkerFinding) -> tuple[str, str]:
    """Return `Progress.now` and `Progress.step` while a worker does not train."""
    held = seen.state.wishes.held.get(worker.name)
    now = f"{worker.name} does not start: {held}" if held else worker.cause.alone
    return now, f"{worker.name} {worker.cause.cause} {worker.cause.level} {held}"


def shrinks(seen: JobMoment, *, size: int, leaving: int) -> Progress:
    """Return the progress of a job towards `size` workers, `leaving` fewer than before."""
    rest = [worker for worker in seen.found.workers if not worker.wanted]
    listed = sum(bool(worker.host) for worker in rest)
    stages = {
        "off the host list": (leaving - listed, leaving),
        "gone": (leaving - len(rest), leaving),
    }
    first = rest[-1].cause if rest else None
    return Progress(
        stages=stages,
        done=not rest,
        now=first.alone if first else "",
        step=f"{first.cause} {rest[-1].name}" if first else "",
        otherwise=_otherwise(seen, size),
    )


def stops(seen: JobMoment) -> Progress:
    """Return the progress of a job towards a suspension."""
    view, stop = seen.snapshot.view, seen.state.wishes.suspended_by
    runs = [pod.ref.name for pod in view.pods if not pod.facts.held_back]
    of = max(len(view.pods), view.replicas + 1)
    going = (
        worker.cause for worker in seen.found.workers if worker.name in runs and not worker.wanted
    )
    waits = next(chain(going, seen.found.job), None) if runs else None
    return Progress(
        stages={"stopped": (of - len(runs), of)},
        done=not runs and bool(stop),
        now=waits.alone if waits else "",
        step=f"{waits.cause} {' '.join(runs)}" if waits else "",
        otherwise=_otherwise(seen, view.replicas)
        or ("" if stop else f"{view.name} is not suspended any more"),
    )


def _otherwise(seen: JobMoment, size: int) -> str:
    view, facts = seen.snapshot.view, seen.snapshot.view.facts
    reasons = {
        f"{view.name} is being deleted": facts.deleting,
        f"{view.name} has ended: {seen.snapshot.job.state}": facts.finished,
        f"another operator manages {view.name} now: {seen.state.foreign}": bool(seen.state.foreign),
        f"the size of {view.name} is {view.replicas} now, not {size}": view.replicas != size,
    }
    return next((why for why, holds in reasons.items() if holds), "")


@contextmanager
def _display(console: Console) -> Iterator[Show]:
    """Give bars on a terminal, elsewhere a line for each step."""
    if not console.is_terminal:
        yield _lines()
        return
    bars = Bars()
    with Live(
        console=console, get_renderable=bars.render, refresh_per_second=REFRESHES, transient=True
    ):
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
        """Keep the progress for the next drawing; while the API server is away, the bars stay."""
        self._progress = replace(progress, stages=progress.stages or self._progress.stages)

    def render(self) -> Group:
        """Return the bars."""
        table = Table.grid(padding=(0, 2))
        for name, (done, of) in self._progress.stages.items():
            bar = ProgressBar(
                total=of or 1,
                completed=done or 0,
                width=_BAR,
                style=_MISSING,
                complete_style=_DONE,
                finished_style=_ALL,
            )
            table.add_row(name, bar, f"{'?' if done is None else done} of {of}")
        since = phrases.duration(round(time.monotonic() - self._began))
        return Group(table, Text(f"{since}  {printable(self._progress.now)}"))

"""Screen of the demo: a table that follows the job on a terminal, a line for each change elsewhere."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lab.demo.ranks import State
from lab.demo.scenes import Scene
from mpijob_elastic import names
from mpijob_elastic.cli.jobs import changes
from mpijob_elastic.cli.jobs.report import JobReport, WorkerReport

RECENT = 8
_STYLES = {
    "yes": "green",
    "no": "dim",
    "running": "green",
    "starting": "yellow",
    "leaving": "yellow",
    "draining": "yellow",
    "killed": "red",
}


class Screen(Protocol):
    """Show scenes and text."""

    def say(self, text: str) -> None:
        """Say something that stays."""

    def show(self, scene: Scene) -> None:
        """Show a moment."""


class News:
    """Print each change, with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last: Scene | None = None

    def of(self, scene: Scene) -> list[str]:
        """The changes since the moment before."""
        last, self._last = self._last, scene
        lines = changes.between(last.report if last else None, scene.report)
        lines += _rank_changes(last.ranks if last else {}, scene.ranks)
        return [f"{scene.at - self._began:5.1f} s  {line}" for line in lines]


class Lines:
    """Plain text, for pipes and CI."""

    def __init__(self) -> None:
        self._news = News()

    def say(self, text: str) -> None:
        """Say something that stays."""
        print(text, flush=True)

    def show(self, scene: Scene) -> None:
        """Print what changed."""
        for line in self._news.of(scene):
            print(f"  {line}", flush=True)


class Page:
    """Draw a table below the text, again for each change."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._news = News()
        self._recent: deque[str] = deque(maxlen=RECENT)

    def say(self, text: str) -> None:
        """Say something that stays, above the table."""
        self._live.console.print(text, style="bold" if text.startswith("$") else "", markup=False)

    def show(self, scene: Scene) -> None:
        """Draw the table again."""
        self._recent.extend(self._news.of(scene))
        recent = Text("\n".join(self._recent), style="dim", no_wrap=True, overflow="ellipsis")
        self._live.update(Group(_workers(scene), _files(scene.report), recent), refresh=True)


@contextmanager
def opened() -> Iterator[Screen]:
    """The screen that fits where we run."""
    console = Console(highlight=False)
    if not console.is_terminal:
        yield Lines()
        return
    # No refreshing thread: processes are started meanwhile.
    with Live(console=console, auto_refresh=False) as live:
        yield Page(live)


def _rank_changes(before: Mapping[str, State], after: Mapping[str, State]) -> list[str]:
    words = {
        "starting": "is being started",
        "running": "runs",
        "leaving": "learns that its host leaves",
        "ended": "ended by itself",
    }
    changed = [host for host, state in after.items() if before.get(host) != state]
    return [f"rank in {host}: {words.get(after[host], 'was killed')}" for host in changed]


def _workers(scene: Scene) -> RenderableType:
    report = scene.report
    counts = f"desired {report.desired}, ready {report.ready}, published {report.published}"
    table = Table(title=f"MPIJob {report.name}: {report.state}, {counts}", title_justify="left", title_style="bold")
    for column in ("WORKER", "PHASE", "READY", "PUBLISHED", "EXEC ALLOWED", "RANK"):
        table.add_column(column)
    for worker in report.workers:
        cells = [_phase(worker), *_facts(report, worker), scene.ranks.get(worker.name, "-")]
        table.add_row(worker.name, *(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table


def _phase(worker: WorkerReport) -> str:
    return "draining" if worker.draining else worker.phase


def _facts(report: JobReport, worker: WorkerReport) -> list[str]:
    facts = (worker.ready, worker.published, worker.name in (report.exec_names or ()))
    return ["yes" if fact else "no" for fact in facts]


def _files(report: JobReport) -> RenderableType:
    script = names.SCRIPT_HEADER + "".join(f"echo {host}\n" for host in report.hosts)
    role = "\n".join(report.exec_names or ["-"])
    return Columns(
        [
            Panel(script.rstrip(), title=names.DISCOVER_HOSTS_PATH, title_align="left"),
            Panel(role, title=f"Role {names.launcher(report.name)}: exec", title_align="left"),
        ]
    )

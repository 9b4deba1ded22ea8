"""Run parts in a row, show their results, and end the program with the right exit code."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import report
from bench.parts.context import TROUBLE, Findings, Setting
from bench.report import Report
from bench.sides import Peer
from lab.display import progress

FAILED, MISSED = 1, 3

Part = Callable[[Setting], Coroutine[Any, Any, Findings]]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of the command line; `check`: a missed target is a failure."""

    repeat: int
    json: Path | None
    check: bool
    peer: Peer = field(default_factory=Peer)


def measure(parts: Sequence[Part], wanted: Wanted) -> None:
    """Run all parts and show their results. A failed part does not stop the others. Raises SystemExit."""
    end_on_sigterm()
    about = report.circumstances()
    found: list[Findings] = []
    failures: list[Exception] = []
    with progress() as say:
        setting = Setting(repeat=wanted.repeat, say=say, peer=wanted.peer)
        for part in parts:
            try:
                found.append(asyncio.run(part(setting)))
                failures.extend(found[-1].failures)
            except TROUBLE as error:
                failures.append(error)
    done = Report(
        circumstances=about,
        notes=tuple(note for findings in found for note in findings.notes),
        figures=tuple(figure for findings in found for figure in findings.figures),
    )
    report.show(done)
    if wanted.json:
        report.save(done, wanted.json)
    for failure in failures:
        print(f"not measured: {failure}", file=sys.stderr)
    if failures:
        raise SystemExit(FAILED)
    if wanted.check and any(figure.verdict is False for figure in done.figures):
        raise SystemExit(MISSED)


def end_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C, so that it also ends the processes that we started."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))

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
from bench.sides import Ours, Peer
from lab.display import progress
from lab.errors import LabError

FAILED, MISSED = 1, 3

Part = Callable[[Setting], Coroutine[Any, Any, Findings]]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of the command line; `check`: a missed target is a failure."""

    repeat: int
    json: Path | None
    check: bool
    ours: Ours = field(default_factory=Ours)
    peer: Peer = field(default_factory=Peer)


def measure(parts: Sequence[Part], wanted: Wanted) -> None:
    """Run all parts and show their results. A failed part does not stop the others. Raises SystemExit.

    Nothing starts if the peer cannot start.
    """
    end_on_sigterm()
    ready(wanted.peer)
    about = report.circumstances()
    found, failures = _run(parts, wanted)
    done = Report(
        circumstances=about,
        notes=tuple(note for findings in found for note in findings.notes),
        figures=tuple(figure for findings in found for figure in findings.figures),
    )
    report.show(done)
    if wanted.json:
        report.save(done, wanted.json)
    for failure in failures:
        _tell(failure)
    if failures:
        raise SystemExit(FAILED)
    if wanted.check and report.missed(done.figures):
        raise SystemExit(MISSED)


def end_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C, so that it also ends the processes that we started."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def ready(peer: Peer) -> None:
    """End the program if the peer cannot start now. Raises SystemExit."""
    try:
        peer.check()
    except LabError as error:
        _tell(error)
        raise SystemExit(FAILED) from error


def _tell(failure: Exception) -> None:
    print(f"not measured: {failure}", file=sys.stderr)


def _run(parts: Sequence[Part], wanted: Wanted) -> tuple[list[Findings], list[Exception]]:
    found: list[Findings] = []
    failures: list[Exception] = []
    with progress() as say:
        setting = Setting(repeat=wanted.repeat, say=say, ours=wanted.ours, peer=wanted.peer)
        for part in parts:
            try:
                findings = asyncio.run(part(setting))
                found.append(findings)
                failures.extend(findings.failures)
            except TROUBLE as error:
                failures.append(error)
    return found, failures

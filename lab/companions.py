"""Processes that work beside the components of a lab, and end with whoever started them: operator, webhook, controller.

The supervisor does not know them. So each has a note beside its log, by which `status` finds it.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lab.layout import Layout
from lab.processes import Identity, new_log, spawn

_NOTE = ".process"


class Companion(msgspec.Struct, frozen=True, kw_only=True):
    """A process beside a lab; `log` is the name of a file in the folder of logs."""

    name: str
    process: Identity
    log: str


def start(
    layout: Layout, name: str, command: Sequence[str], *, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a process, and return it with its log."""
    log = new_log(layout.logs, name)
    process = spawn(command, log=log, environment=environment)
    companion = Companion(name=name, process=Identity.of(process.pid), log=log.name)
    unread = log.with_suffix(".new")
    unread.write_bytes(msgspec.json.encode(companion))
    unread.replace(log.with_suffix(_NOTE))
    return process, log


def running(layout: Layout) -> Iterator[Companion]:
    """Yield those that run, by name."""
    for note in sorted(layout.logs.glob(f"*{_NOTE}")):
        companion = msgspec.json.decode(note.read_bytes(), type=Companion)
        if companion.process.alive():
            yield companion

"""Processes beside the components of a lab, as `python -m lab status` names them."""

import os
from pathlib import Path

from lab import companions
from lab.control import Status
from lab.display import report
from lab.layout import Layout
from lab.options import Options
from lab.processes import Identity, end
from lab.programs import Programs
from lab.state import State

NO_PROGRAMS = Programs(**{name: Path(name) for name in Programs.__struct_fields__})
READY = Status(
    up=True,
    state=State(
        phase="ready",
        supervisor=Identity.of(os.getpid()),
        options=Options(),
        programs=NO_PROGRAMS,
    ),
)


def lines_of(layout: Layout, name: str) -> list[str]:
    return [line for line in report(layout, READY) if line.split()[0] == name]


def test_it_is_named_with_its_log_while_it_runs(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.logs.mkdir()
    process, log = companions.start(layout, "webhook", ["sleep", "60"], environment=os.environ)
    try:
        assert lines_of(layout, "webhook") == [f"  {'webhook':<24}pid {process.pid}, {log}"]
    finally:
        end(process, within=5.0)
    assert lines_of(layout, "webhook") == []


def test_two_of_one_name_are_both_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.logs.mkdir()
    started = [
        companions.start(layout, "controller", ["sleep", "60"], environment=os.environ)
        for _ in range(2)
    ]
    try:
        assert len(lines_of(layout, "controller")) == 2
    finally:
        for process, _ in started:
            end(process, within=5.0)

"""How a run ends: what is shown and saved, and the exit code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bench import running
from bench.figures import Figure, Target
from bench.parts.setting import Findings, Setting
from bench.report import Report
from bench.running import Wanted
from lab.errors import LabError


def wanted(*, json: Path | None = None, check: bool = False) -> Wanted:
    return Wanted(repeat=2, json=json, check=check)


async def slow(setting: Setting) -> Findings:
    figure = Figure(topic="t", group="g", name="time", unit="s", ours=(9.0,) * setting.repeat, target=Target(limit=1))
    return Findings(figures=[figure], notes=["measured on paper"])


async def broken(_: Setting) -> Findings:
    raise LabError("no lab today")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_what_was_found_is_shown_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running.measure([slow], wanted(json=tmp_path / "figures.json"))
    shown = capsys.readouterr().out
    assert "measured on paper" in shown
    assert "MISSED" in shown
    saved = msgspec.json.decode((tmp_path / "figures.json").read_bytes(), type=Report)
    assert saved.figures[0].ours == (9.0, 9.0)
    assert saved.circumstances.cores >= 1


def test_a_missed_target_fails_only_where_that_is_asked_for() -> None:
    running.measure([slow], wanted())
    with pytest.raises(SystemExit) as end:
        running.measure([slow], wanted(check=True))
    assert end.value.code == running.MISSED


def test_a_part_that_fails_does_not_keep_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        running.measure([broken, slow], wanted())
    assert end.value.code == running.FAILED
    shown = capsys.readouterr()
    assert "MISSED" in shown.out
    assert "not measured: no lab today" in shown.err

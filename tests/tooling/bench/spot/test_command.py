"""The command line becomes a trace, or is refused before anything starts."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.cli import app
from bench.spot import command
from bench.spot.command import Wanted
from bench.spot.contenders import SideName
from bench.spot.economics import Prices

SAMPLE = Path(__file__).with_name("small.json")
WANTED = Wanted(trace=None, seed=1, size=4, hours=2, quick=False, prices=Prices(), json=None, chart=None)


def test_a_trace_is_made_unless_one_is_given() -> None:
    made = command.find(WANTED)
    assert (made.size, made.horizon) == (4, 7200)
    read = command.find(replace(WANTED, trace=SAMPLE))
    assert read.source.startswith("small.json")
    assert read.horizon == 3600


def test_a_quick_one_is_short_and_eventful() -> None:
    quick = command.find(replace(WANTED, quick=True))
    assert (quick.size, quick.horizon) == (2, 3600)
    assert quick.interruptions >= 1


@pytest.mark.parametrize("text", ["", "[1, 2]"])
def test_a_file_that_is_no_trace_is_told_before_a_lab_starts(tmp_path: Path, text: str) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text)
    shown = CliRunner().invoke(app, ["spot", f"--trace={wrong}"])
    assert shown.exit_code == 2
    assert "not a spot trace" in shown.output


def test_all_sides_play_unless_some_are_asked_for() -> None:
    assert [side.name for side in command.contenders_of(WANTED)] == ["static", "peer", "ours"]
    assert [side.name for side in command.contenders_of(replace(WANTED, sides=[SideName.PEER]))] == ["peer"]

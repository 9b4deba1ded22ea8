"""The table and the JSON of a replay."""

from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.report import Circumstances, save
from bench.spot import report
from bench.spot.costs import Costs
from bench.spot.economics import Prices
from bench.spot.replay import Outcome
from bench.spot.report import Report
from bench.spot.trace import Instance, Trace
from bench.spot.training import Point

ABOUT = Circumstances(
    at="2026-01-01 00:00 UTC", command="python -m bench spot", version="1", python="3", cores=2, memory_gib=8, load=0.1
)
TRACE = Trace(
    source="test",
    size=1,
    horizon=36_000,
    instances=(Instance(name="0", up=0, noticed=17_880, gone=18_000), Instance(name="1", up=18_000)),
)
OUTCOME = Outcome(
    points=(Point(at=0, world=0, useful=0),),
    useful=72_000,
    lost=1_200,
    gpu_seconds=18_300,
    killed=1,
    failures=("train-worker-0 was lost",),
    real_seconds=60,
)


@pytest.fixture
def found() -> Report:
    return Report(
        circumstances=ABOUT,
        trace=TRACE,
        costs=Costs(),
        prices=Prices(),
        notes=("A note.",),
        outcomes={"static job": OUTCOME},
    )


def cells(found: Report) -> dict[str, list[str]]:
    console = Console(width=240)
    with console.capture() as captured:
        console.print(report.table(found))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in captured.get().splitlines() if "|" in line
    ]
    return {row[0]: row[1:] for row in rows}


def test_each_side_has_a_row_between_the_bounds(found: Report) -> None:
    rows = cells(found)
    assert rows["static job"] == ["10", "5.08", "72,000", "1,200", "1", "1", "3.00", "0.0417", "40.0%", "57.1%"]
    assert rows["on demand, never interrupted"][-3:] == ["0.0694", "0.0%", "0.0%"]
    assert rows["spot, if no second were lost"][-2:] == ["70.0%", "100.0%"]


def test_what_is_shown_says_what_it_is_of(found: Report, capsys: pytest.CaptureFixture[str]) -> None:
    report.show(found)
    shown = capsys.readouterr().out
    assert "1 interruptions, 0 of them without notice" in shown
    assert "promised saving 70%" in shown
    assert "A note." in shown


def test_the_file_holds_all_of_it(found: Report, tmp_path: Path) -> None:
    save(found, tmp_path / "spot.json")
    assert msgspec.json.decode((tmp_path / "spot.json").read_bytes(), type=Report) == found

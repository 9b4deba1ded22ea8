"""A run's figures beside those of the last release: shown, never judged."""

from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from typer.testing import CliRunner

from bench import report, targets
from bench.cli import app
from bench.figures import Figure
from bench.report import LAST_RELEASE, Circumstances, Report
from bench.scale import EDITS

RELEASED = Path(__file__).parents[3] / "docs" / "records" / "released.json"


def figure(*, name: str = "edit to Role right", **samples: Any) -> Figure:
    return Figure(topic="Change of size", group="1→12", name=name, unit="ms", **samples)


def column(table: Table, heading: str) -> list[str]:
    [cells] = ([*one.cells] for one in table.columns if one.header == heading)
    return [str(cell) for cell in cells]


@pytest.mark.parametrize(
    ("then", "shown"),
    [
        pytest.param([figure(ours=(30.0, 10.0, 20.0))], "20", id="the median"),
        pytest.param([figure(ours=(20.0,), peer=(16.0,))], "20, ratio 1.25", id="and the ratio"),
        pytest.param([figure(ours=(20.0,), peer=(0.0,))], "20", id="nothing is no divisor"),
        pytest.param([figure(peer=(16.0,))], "-", id="only the peer's"),
        pytest.param([], "-", id="a figure that the release did not have"),
        pytest.param([figure(name="a new name", ours=(20.0,))], "-", id="another figure"),
    ],
)
def test_a_figure_stands_beside_that_of_the_release(then: list[Figure], shown: str) -> None:
    now = figure(ours=(900.0,), peer=(1.0,), target=targets.ROLE)
    table = report.table([now], then=report.by_place(then))
    assert column(table, LAST_RELEASE) == [shown]
    # The verdict is about this run and its target alone.
    assert column(table, "verdict") == column(report.table([now]), "verdict") == ["MISSED"]


def test_without_a_release_there_is_no_column() -> None:
    assert LAST_RELEASE not in [one.header for one in report.table([figure(ours=(1.0,))]).columns]


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    about = Circumstances(
        at="2026-01-01 00:00 UTC",
        command="python -m bench scale",
        version="0.1.0",
        python="3.11.7",
        cores=2,
        memory_gib=4,
        load=0.0,
    )
    saved = Report(circumstances=about, notes=("alone",), figures=(figure(ours=(1.0,)),))
    report.save(saved, tmp_path / "figures.json")
    assert report.read(tmp_path / "figures.json") == saved


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"figures": []}'])
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "figures.json").write_text(text)
    with pytest.raises(ValueError, match=r"JSON|Object|array|truncated"):
        report.read(tmp_path / "figures.json")


def test_the_committed_figures_are_those_that_a_run_has() -> None:
    changes = [one for one in report.read(RELEASED).figures if one.topic == "Change of size"]
    assert {one.group for one in changes if one.ours and one.peer} == set(EDITS)


@pytest.mark.parametrize(
    ("option", "file"),
    [
        pytest.param("--json", "missing/figures.json", id="no folder to write to"),
        pytest.param("--released", "missing.json", id="no file to read"),
        pytest.param("--released", "bench.toml", id="a file that is no report"),
    ],
)
def test_a_wrong_file_is_told_before_the_measurement(
    tmp_path: Path, option: str, file: str
) -> None:
    (tmp_path / "bench.toml").write_text("[figures]")
    done = CliRunner().invoke(app, ["events", option, str(tmp_path / file)])
    assert done.exit_code == 2
    assert option in done.output

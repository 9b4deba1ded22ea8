"""The command line of the benchmarks."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.cli import app

COMMANDS = ("scale", "throughput", "webhook", "events", "memory", "start", "spot", "real", "all")


def test_help_names_every_command_and_the_exit_codes() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(f"  {command} " in shown for command in COMMANDS)
    assert "Exit codes: 0" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_gives_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"python -m bench {command}" in shown.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["scale", "--peer-operator=no-such-file"],
        ["events", "--repeat=0"],
        ["nothing"],
    ],
)
def test_wrong_usage_is_told_before_anything_starts(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_the_cheapest_part_runs_from_end_to_end(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["events", "--repeat=1", f"--json={tmp_path / 'figures.json'}"])
    assert ran.exit_code == 0
    assert "one pod event" in ran.output
    assert (tmp_path / "figures.json").exists()

"""Values that are taken without pydantic are what typer makes of them with it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperCommand
from typer.main import get_command
from typer.testing import CliRunner

from mpijob_elastic.cli.typed import CheckedCommand, plain
from mpijob_elastic.telemetry.terminal import say


class Colour(StrEnum):
    """A choice of another make than a Literal."""

    RED = "red"


def show(
    *,
    job: Annotated[str | None, typer.Argument()] = None,
    rest: Annotated[list[str] | None, typer.Argument()] = None,
    text: str = "",
    several: Annotated[list[str] | None, typer.Option()] = None,
    output: Literal["table", "json"] = "table",
    colour: Colour = Colour.RED,
    number: int = 1,
    flag: bool = False,
    file: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
    folder: Annotated[Path | None, typer.Option(exists=True, file_okay=False)] = None,
    real: Annotated[Path | None, typer.Option(resolve_path=True)] = None,
    split: Annotated[Any, typer.Option(parser=str.split)] = None,
) -> None:
    """Take values of all makes."""
    values = job, rest, text, several, output, colour, number, flag, file, folder, real, split
    say(str(values))


def said(by: type[TyperCommand], *words: str) -> tuple[int, str]:
    program = typer.Typer(add_completion=False)
    program.command(cls=by)(show)
    done = CliRunner().invoke(program, words, env={"COLUMNS": "300"})
    # The words of pydantic itself, which our commands leave out.
    return done.exit_code, " ".join(done.output.replace("Value error, ", "").split())


@pytest.mark.parametrize(
    "words",
    [
        "",
        "train a b",
        "mpijob/train --text x --output json",
        "--text=",
        "--several a --several b",
        "--output yaml",
        "--output JSON",
        "--output=",
        "--colour red --number 3 --flag",
        "--colour blue",
        "--number x",
        "--file there --folder . --real there",
        "--file ./there",
        "--file .",
        "--file missing",
        "--file locked",
        "--folder there",
        "--real ../x",
        "--split=a,b",
    ],
)
def test_a_value_is_what_typer_makes_of_it(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    Path("locked").touch(mode=0)
    assert said(CheckedCommand, *words.split()) == said(TyperCommand, *words.split())


@pytest.mark.parametrize(
    ("name", "value", "is_plain"),
    [
        ("job", "train", True),
        ("job", b"train", False),
        ("several", ["a", "b"], True),
        ("several", ["a", b"b"], False),
        ("rest", (), True),
        ("output", "json", True),
        ("output", "JSON", False),
        ("colour", "red", False),
        ("number", "3", False),
        ("file", __file__, True),
        ("file", str(Path(__file__).parent), False),
        ("file", "/missing\0", False),
        ("folder", __file__, False),
        ("real", __file__, False),
        ("split", "a", False),
    ],
)
def test_typer_checks_what_is_not_surely_right(name: str, value: Any, is_plain: bool) -> None:
    program = typer.Typer(add_completion=False)
    program.command()(show)
    [kind] = [
        parameter.type_descriptor  # type: ignore[attr-defined]
        for parameter in get_command(program).params
        if parameter.name == name
    ]
    assert (plain(value, kind) is not None) is is_plain

"""The decorator that gives commands their shared options."""

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.target import Where

Word = Annotated[str, typer.Option()]


def invoked(function: Any, *words: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(function)
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param({}, "first namespace last kubeconfig context", id="a namespace"),
        pytest.param(
            {"all_namespaces": True},
            "first namespace all_namespaces last kubeconfig context",
            id="all namespaces",
        ),
        pytest.param({"namespace": False}, "first last kubeconfig context", id="no namespace"),
    ],
)
def test_shared_options_have_their_places(options: dict[str, bool], names: str) -> None:
    @cluster_command(**options)  # type: ignore[arg-type]
    async def command(*, first: Word = "", where: Where, last: Word = "") -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(command)
    assert not isinstance(get_command(app), TyperGroup)
    assert [option.name for option in get_command(app).params] == names.split()


def test_a_command_is_told_where_to_work(tmp_path: Path) -> None:
    told: list[Where] = []

    @cluster_command(all_namespaces=True)
    async def command(*, where: Where) -> None:
        told.append(where)

    file = tmp_path / "kubeconfig"
    file.touch()
    given = ["-n", "ml", "-A", "--context", "east", "--kubeconfig", str(file)]
    assert invoked(command, *given) == (0, "")
    assert invoked(command) == (0, "")
    assert told == [
        Where(kubeconfig=file, context="east", namespace="ml", all_namespaces=True),
        Where(),
    ]


@pytest.mark.parametrize(
    ("given", "contexts"),
    [
        pytest.param([], [None], id="the current context"),
        pytest.param(["--context", "a", "--context", "b"], ["a", "b"], id="two contexts"),
    ],
)
def test_several_contexts_are_several_places(given: list[str], contexts: list[str | None]) -> None:
    told: list[list[Where]] = []

    @cluster_command(several_contexts=True)
    async def command(*, where: list[Where]) -> None:
        told.append(where)

    assert invoked(command, "-n", "ml", *given) == (0, "")
    assert told == [[Where(context=context, namespace="ml") for context in contexts]]


@pytest.mark.parametrize("code", [None, *Exit])
def test_the_program_exits_with_what_the_command_returns(code: Exit | None) -> None:
    @cluster_command()
    async def command(*, where: Where) -> Exit | None:
        return code

    @cluster_command()
    def at_once(*, where: Where) -> Exit | None:
        return code

    assert invoked(command)[0] == (code or 0)
    assert invoked(at_once)[0] == (code or 0)


@pytest.mark.parametrize("interrupted", ["", "Run it again."])
def test_ctrl_c_says_how_to_finish_if_there_is_a_way(interrupted: str) -> None:
    @cluster_command(interrupted=interrupted)
    async def command(*, where: Where) -> None:
        raise KeyboardInterrupt

    code, said = invoked(command)
    assert code == Exit.INTERRUPTED
    assert interrupted in said

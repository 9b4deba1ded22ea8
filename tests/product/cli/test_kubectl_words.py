"""Forms of options that kubectl reads: -n=ml, --wait=false, and options before the command."""

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from mpijob_elastic.cli.options import job_names, job_names_or_all
from mpijob_elastic.cli.typed import CheckedCommand, globals_behind
from mpijob_elastic.telemetry.terminal import say
from tests.product.cli.test_commands import typed


def show(
    *,
    words: Annotated[list[str] | None, typer.Argument()] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n")] = "default",
    everywhere: Annotated[bool, typer.Option("--everywhere", "-A")] = False,
    wait: bool = True,
) -> None:
    """Print what was read."""
    say(str((words or [], namespace, everywhere, wait)))


def read(line: str) -> str:
    program = typer.Typer(add_completion=False)
    program.command(cls=CheckedCommand)(show)
    done = CliRunner().invoke(program, line.split())
    return done.stdout.strip() or " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-n=ml a", (["a"], "ml", False, True)),
        ("-nml -A", ([], "ml", True, True)),
        ("--namespace=ml --wait=false", ([], "ml", False, False)),
        ("--wait=true --everywhere=true", ([], "default", True, True)),
        ("-A=true --no-wait", ([], "default", True, False)),
        ("--everywhere=false", ([], "default", False, True)),
        ("-- -n=ml --wait=false", (["-n=ml", "--wait=false"], "default", False, True)),
        ("x=y", (["x=y"], "default", False, True)),
    ],
)
def test_a_value_may_stand_behind_an_equals_sign(line: str, found: tuple[object, ...]) -> None:
    assert read(line) == str(found)


def test_another_value_of_a_switch_is_wrong() -> None:
    assert "does not take a value" in read("--wait=no")


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("get -n ml", "get -n ml"),
        ("-n ml get train", "get -n ml train"),
        ("--namespace=ml --context east get", "get --namespace=ml --context east"),
        ("-n ml set bounds train --min 2", "set bounds -n ml train --min 2"),
        ("--kubeconfig f upgrade preflight", "upgrade preflight --kubeconfig f"),
        ("--help", "--help"),
        ("-n", "-n"),
        ("-n ml", "-n ml"),
        ("-n ml set", "set -n ml"),
        ("", ""),
    ],
)
def test_options_before_the_command_are_those_of_the_command(line: str, same: str) -> None:
    assert globals_behind(line.split(), {"set", "upgrade"}) == same.split()


def test_they_reach_the_command() -> None:
    done = typed("--kubeconfig", "/none", "get")
    said = " ".join(done.stderr.replace("│", " ").split())
    assert said.startswith("Usage: mpijob-elastic get ")
    assert "/none" in said


@pytest.mark.parametrize(
    ("words", "names", "or_all"),
    [
        ([], [], []),
        (["train"], ["train"], ["train"]),
        (["mpijob", "train"], ["train"], ["train"]),
        (["mpijobs.kubeflow.org", "a", "b", "a"], ["a", "b"], ["a", "b"]),
        (["mj", "mpijob/train", "eval"], ["train", "eval"], ["train", "eval"]),
        (["mpijobs"], ["mpijobs"], []),
        (["MPIJob"], ["MPIJob"], []),
        (["train", "mpijob"], ["train", "mpijob"], ["train", "mpijob"]),
        (["mpijob/mpijob"], ["mpijob"], ["mpijob"]),
    ],
)
def test_the_kind_before_the_names_is_no_name(
    words: list[str], names: list[str], or_all: list[str]
) -> None:
    assert job_names(words) == names
    assert job_names_or_all(words) == or_all

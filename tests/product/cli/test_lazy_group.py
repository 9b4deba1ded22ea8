"""What a command imports when it starts, and that a lazy group behaves as another one."""

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from mpijob_elastic.cli import ProgramGroup, app, work
from tests.faults.kubeconfig import write_plain

OURS = ("mpijob_elastic", "webhook", "upgrade")
COMMANDS = "mpijob_elastic.cli.commands."
SHOWS_MODULES = """
import json, sys
from mpijob_elastic.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command has loaded when it ends; no API server answers it."""
    write_plain(folder / "kubeconfig", "http://127.0.0.1:1")  # nobody listens there
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_MODULES, *words],
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def ours(modules: set[str]) -> set[str]:
    return {module for module in modules if module.partition(".")[0] in OURS}


def commands(modules: set[str]) -> set[str]:
    return {module.removeprefix(COMMANDS) for module in modules if module.startswith(COMMANDS)}


@pytest.mark.parametrize(
    ("words", "most"),
    [
        pytest.param("get", 162, id="get"),
        pytest.param("get --help", 22, id="help of get"),
        pytest.param("scaleout --help", 23, id="help of scaleout"),
    ],
)
def test_a_command_loads_no_other_command_and_no_more_modules_than_it_needs(
    tmp_path: Path, words: str, most: int
) -> None:
    modules = loaded(tmp_path, *words.split())
    assert commands(modules) == {words.split(maxsplit=1)[0]}
    assert len(ours(modules)) <= most


def test_get_loads_nothing_of_the_controller_or_of_an_installation(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "get")
    assert not modules & {
        "prometheus_client",
        "kubernetes",  # a plain kubeconfig is read without it
        "pydantic",
        "mpijob_elastic.act.looks",
        "mpijob_elastic.act.worker_probes",
        "mpijob_elastic.install.objects",
        "mpijob_elastic.install.overlays",
        "mpijob_elastic.telemetry.metrics",
        "typer._adapters",  # typer's use of pydantic
    }


@pytest.mark.parametrize(
    "words",
    ["--help", "--version", "help get", "version", "submit --help", "upgrade convert --help"],
)
def test_without_an_api_server_no_client_is_loaded(tmp_path: Path, words: str) -> None:
    modules = loaded(tmp_path, *words.split())
    assert not modules & {"aiohttp", "kubernetes", "cryptography", "prometheus_client", "pydantic"}
    assert not modules & set(work.PLACES.values())


def test_a_name_that_was_mistyped_gets_a_proposal_without_an_import(tmp_path: Path) -> None:
    assert "Did you mean 'suspend'?" in CliRunner().invoke(app, ["suspnd"]).output
    assert commands(loaded(tmp_path, "suspnd")) == set()


def test_each_command_stands_in_the_module_of_its_name() -> None:
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    assert list(program.commands) == list(ProgramGroup.places)
    for name, place in ProgramGroup.places.items():
        module = place.partition(":")[0].removeprefix(COMMANDS)
        assert module == ("get" if name == "list" else name)
        assert program.commands[name].name == name


def test_modules_that_do_the_work_are_those_that_a_type_checker_sees() -> None:
    tree = ast.parse(Path(work.__file__).read_text())
    [seen] = [node for node in tree.body if isinstance(node, ast.If)]
    places = {
        name.asname or name.name: f"{line.module}.{name.name}"
        for line in seen.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    assert places == work.PLACES
    assert all(getattr(work, name) is importlib.import_module(places[name]) for name in places)
    with pytest.raises(AttributeError):
        _ = work.missing  # type: ignore[attr-defined]

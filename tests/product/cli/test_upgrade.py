import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from mpijob_elastic.cli import app
from mpijob_elastic.cli.upgrade import app as group
from mpijob_elastic.install.refusal import Refused

OLD = "apiVersion: kubeflow.org/v1alpha2\nkind: MPIJob\nmetadata: {name: old}\nspec: {gpus: 4}\n"
WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


@pytest.mark.parametrize("command", sorted(str(one.name) for one in group.registered_commands))
def test_help_has_an_example_and_the_exit_codes(command: str) -> None:
    text = " ".join(CliRunner().invoke(app, ["upgrade", command, "--help"], env=WIDE).output.split())
    assert re.search(rf"For example:.*mpijob-elastic upgrade {command}", text)
    assert "Exit codes: 0 " in text


def test_convert_reads_standard_input_and_complains_on_standard_error() -> None:
    done = CliRunner().invoke(app, ["upgrade", "convert", "-"], input=OLD)
    assert done.exit_code == 0
    assert yaml.safe_load(done.stdout)["apiVersion"] == "kubeflow.org/v1"
    assert "# MPIJob old: spec.gpus: has no counterpart; left out" in done.stdout
    assert "stdin.yaml: MPIJob old: spec.gpus: has no counterpart; left out" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["job.yaml", "--live", "mpijob/train"]])
def test_convert_wants_one_source(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, ["upgrade", "convert", *arguments], env=WIDE)
    assert (done.exit_code, "give either a file" in done.stderr) == (2, True)


def test_convert_says_which_file_is_not_yaml(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("{")
    done = CliRunner().invoke(app, ["upgrade", "convert", str(tmp_path / "job.yaml")])
    assert isinstance(done.exception, Refused)
    assert "job.yaml is not YAML" in str(done.exception)


@pytest.mark.parametrize("command", ["preflight", "apply"])
def test_the_overlay_for_namespaces_needs_them(command: str) -> None:
    done = CliRunner().invoke(app, ["upgrade", command, "--overlay", "single-namespace"], env=WIDE)
    assert (done.exit_code, "--jobs-namespace" in done.stderr) == (2, True)

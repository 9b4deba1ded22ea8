"""Checks of the Dockerfile that need no engine to build it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)


def test_the_base_is_one_release() -> None:
    [argument] = instructions("ARG")
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-[a-z]+", argument)
    assert all(line.startswith("${PYTHON}") for line in instructions("FROM"))


def test_what_is_downloaded_is_known_by_its_hash() -> None:
    downloads = [line for line in instructions("RUN") if '"install"' in line]
    assert len(downloads) == 2
    assert all({"--require-hashes", "--only-binary"} <= set(json.loads(line)) for line in downloads)
    [own] = [line for line in instructions("RUN") if " install " in line]
    assert "--no-index" in own


def test_it_runs_as_nobody_in_particular_and_without_a_shell(project: dict[str, Any]) -> None:
    assert instructions("USER") == ["65532:65532"]
    [entrypoint] = (json.loads(line) for line in instructions("ENTRYPOINT"))
    assert set(entrypoint) <= set(project["project"]["scripts"])


def test_every_package_of_the_wheel_gets_in(project: dict[str, Any]) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    for package in packages:
        assert f"{package} {package}" in instructions("COPY")
        assert f"!{package}" in IGNORED


def test_the_builder_is_the_one_the_project_asks_for(project: dict[str, Any]) -> None:
    pinned = re.findall(r"^[a-z0-9-]+==\S+", (ROOT / "requirements" / "build.txt").read_text(), re.MULTILINE)
    assert set(project["build-system"]["requires"]) <= set(pinned)

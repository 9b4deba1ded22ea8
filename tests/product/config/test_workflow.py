"""What GitHub runs is what everybody can run, with as few rights as it needs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text()


@pytest.fixture
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
    return found


def test_each_action_is_pinned_by_its_commit() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)] == []


def test_it_runs_what_is_there(jobs: dict[str, Any]) -> None:
    commands = "\n".join(step["run"] for job in jobs.values() for step in job["steps"] if "run" in step)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"unit", "release"} == set(re.findall(r"make ([a-z-]+)", commands)) <= targets
    assert ".ci/run" in commands


def test_only_a_tagged_release_may_write_and_only_after_the_tests(jobs: dict[str, Any]) -> None:
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["release"]
    assert jobs["release"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["release"]["needs"]) == jobs.keys() - {"release"}

"""A function of these folders is plain enough to be read at once: it has few branches."""

import ast
from pathlib import Path

import pytest

from scripts.density import branches

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "mpijob_elastic/act",
    "mpijob_elastic/controller",
    "mpijob_elastic/install",
    "mpijob_elastic/kube",
    "mpijob_elastic/model",
    "mpijob_elastic/observe",
    "mpijob_elastic/telemetry",
    "upgrade",
)
MOST = 15


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_branches_much(folder: str) -> None:
    found = [
        (f"{file.name}:{name}", count)
        for file in sorted((ROOT / folder).rglob("*.py"))
        for count, name in branches(ast.parse(file.read_text()))
    ]
    assert found
    assert [(place, count) for place, count in found if count > MOST] == []

"""A function of the command line is plain enough to be read at once."""

import ast
from pathlib import Path

from scripts.density import branches

CLI = Path(__file__).parents[3] / "mpijob_elastic" / "cli"
MOST = 12


def test_no_function_branches_much() -> None:
    found = [
        (f"{file.relative_to(CLI)}:{name}", count)
        for file in sorted(CLI.rglob("*.py"))
        for count, name in branches(ast.parse(file.read_text()))
    ]
    assert found
    assert [(place, count) for place, count in found if count > MOST] == []

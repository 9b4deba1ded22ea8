"""A class of the command line has a name that no other class of the product has."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
CLI = "mpijob_elastic/cli/"


def classes() -> dict[str, list[str]]:
    """Return the files in which each name of a class stands."""
    found = defaultdict[str, list[str]](list)
    for folder in ("mpijob_elastic", "webhook", "upgrade"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(file.relative_to(ROOT).as_posix())
    return found


def test_a_name_is_told_once() -> None:
    twice = {
        name: files
        for name, files in classes().items()
        if len(files) > 1 and any(file.startswith(CLI) for file in files)
    }
    assert twice == {}

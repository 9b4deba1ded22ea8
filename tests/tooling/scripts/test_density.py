"""The report of density: what counts as a line of code, a join, a branch, and as an extension point that is used once."""

import ast
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from scripts import density
from scripts.density import code_lines

ROOT = Path(__file__).parents[3]
SOURCE = '''"""Module."""

import os
from sys import (
    path,
)

# A comment.
TEXT = """two
lines"""


def function() -> str:
    """Summary.

    More.
    """
    return TEXT  # said
'''
JOINS = """
def choose(a, b, c):
    assert a
    for one in [each for each in c if each or b]:
        if a and b and one:
            return one

    async def inner():
        return 1 if a else 2
"""


def test_only_code_counts() -> None:
    assert code_lines(SOURCE) == 4
    assert code_lines("") == 0


def test_imports_are_counted_apart() -> None:
    assert density.density(SOURCE, ast.parse(SOURCE)) == density.Density(lines=4, imports=4)


def test_joins_are_each_and_and_or_and_conditional_expressions() -> None:
    measured = density.density(JOINS, ast.parse(JOINS))
    assert measured == density.Density(lines=7, joins=4)
    assert measured.per_100 == pytest.approx(400 / 7)


def test_nothing_has_no_density() -> None:
    assert density.Density().per_100 == 0


def test_branches_of_a_function_include_those_of_functions_in_it() -> None:
    # choose: assert, for, comprehension, if, or, two times and; and what inner has.
    assert density.branches(ast.parse(JOINS)) == [(1, "inner"), (8, "choose")]


def test_the_worst_functions_come_first() -> None:
    path = PurePath("a.py")
    assert density.most_branches({path: ast.parse(JOINS)}) == [
        (8, "a.py:choose"),
        (1, "a.py:inner"),
    ]


def product(**rooms: str) -> dict[PurePath, ast.Module]:
    """Return a product whose core has only the base classes, with capabilities of these sources."""
    members = "    gate: str = ''\n    def tell(self): ...\n    def _own(self): ..."
    core = {path: f"class {name}:\n{members}" for name, path in density.BASES.items()}
    parts = {density.CAPABILITIES / room / "__init__.py": source for room, source in rooms.items()}
    return {path: ast.parse(source) for path, source in {**core, **parts}.items()}


@pytest.mark.parametrize(
    ("rooms", "used_once"),
    [
        pytest.param({}, {}, id="nobody uses it"),
        pytest.param(
            {"a": "class A(CapabilityFacts):\n    def tell(self): ..."},
            {"tell": "a"},
            id="a method",
        ),
        pytest.param(
            {"a": "class A(job_facts.CapabilityFacts[F]):\n    gate = 'a'"},
            {"gate": "a"},
            id="an attribute",
        ),
        pytest.param(
            {"a": "class A(CapabilityFacts):\n    gate: str = 'a'"},
            {"gate": "a"},
            id="with its type",
        ),
        pytest.param(
            {"a": "class A(CapabilityFacts): ...\nclass B(A):\n    gate = 'b'"},
            {"gate": "a"},
            id="grandchild",
        ),
        pytest.param(
            {
                "a": "class A(CapabilityFacts):\n    gate = 'a'\nclass B(CapabilityFacts):\n    gate = 'b'"
            },
            {"gate": "a"},
            id="twice in a capability",
        ),
        pytest.param(
            {
                "a": "class A(CapabilityFacts):\n    gate = 'a'",
                "b": "class B(CapabilityFacts):\n    gate = 'b'",
            },
            {},
            id="two capabilities",
        ),
        pytest.param(
            {"a": "class A(CapabilityFacts):\n    more = 1\n    def _own(self): ..."},
            {},
            id="its own names",
        ),
        pytest.param({"a": "class A(Other):\n    gate = 'a'"}, {}, id="another base"),
    ],
)
def test_an_extension_point_that_one_capability_uses(
    rooms: dict[str, str], used_once: dict[str, str]
) -> None:
    assert density.used_once(product(**rooms))["CapabilityFacts"] == used_once


def test_a_base_class_that_has_moved_is_named() -> None:
    trees = product()
    del trees[density.BASES["CapabilityFacts"]]
    with pytest.raises(
        LookupError, match=r"no class CapabilityFacts in mpijob_elastic/model/job_facts\.py"
    ):
        density.used_once(trees)


def report(*arguments: str) -> str:
    command = [sys.executable, "scripts/density.py", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_the_product_is_reported() -> None:
    """Each base class is where BASES says."""
    table, functions, points = report().split("\n\n")
    assert "  mpijob_elastic/decide\n" in table
    assert len(functions.splitlines()) == 1 + density.MOST_BRANCHES
    assert points.startswith("extension points that a single capability uses\n")


def test_a_row_for_each_file_of_a_folder() -> None:
    table, _ = report("--files", "webhook").split("\n\n")
    assert "  webhook/server.py\n" in table
    assert "  mpijob_elastic/" not in table


def test_a_row_has_what_changed() -> None:
    # Called as by main, without git.
    place = PurePath("webhook/a.py")
    now, before = {place: density.Density(30, 0, 3)}, {place: density.Density(10, 0, 2)}
    rows = [*density._table(now, before, by_file=False, since="v1")]
    assert rows[0] == "per 100   lines  imports  place, and the change since v1"
    assert rows[1] == "   10.0      30        0  webhook  (-10.0, +20 lines)"
    same = [*density._table(now, now, by_file=True, since="v1")]
    assert same[1] == "   10.0      30        0  webhook/a.py"


def test_a_folder_is_compared_with_a_revision() -> None:
    table, _ = report("--since", "HEAD", "upgrade").split("\n\n")
    assert table.startswith("per 100   lines  imports  place, and the change since HEAD\n")
    assert len(table.splitlines()) == 3  # the header, upgrade and the total

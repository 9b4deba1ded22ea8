"""The code stays plain: what scripts/density.py reports has a bound here, and no module needs itself."""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath

import pytest

from scripts import density

ROOT = Path(__file__).parents[2]
PRODUCT = ("mpijob_elastic", "webhook", "upgrade")
# Branches of one function; a command has only to put answers together.
MOST_BRANCHES = 15
MOST_BRANCHES_OF_A_COMMAND = 12
# `and`, `or` and conditional expressions in 100 lines of a package.
MOST_JOINS = {"mpijob_elastic/decide": 12.0}
# Points of an interface that a single capability uses.
MOST_USED_ONCE = 8


@pytest.fixture(scope="module")
def trees() -> Mapping[PurePath, ast.Module]:
    sources = density.read_files(ROOT / part for part in PRODUCT)
    return {path.relative_to(ROOT): ast.parse(source) for path, source in sources.items()}


def bound(path: PurePath) -> int:
    is_command = path.is_relative_to("mpijob_elastic/cli")
    return MOST_BRANCHES_OF_A_COMMAND if is_command else MOST_BRANCHES


def test_no_function_branches_much(trees: Mapping[PurePath, ast.Module]) -> None:
    found = [
        (f"{path}:{name}", count)
        for path, tree in trees.items()
        for count, name in density.branches(tree)
        if count > bound(path)
    ]
    assert not found


@pytest.mark.parametrize("package", MOST_JOINS)
def test_a_line_of_a_package_holds_one_thought(package: str) -> None:
    sources = density.read_files([ROOT / package])
    measured = [density.density(source, ast.parse(source)) for source in sources.values()]
    assert sum(measured, density.Density()).per_100 <= MOST_JOINS[package]


def test_few_points_of_an_interface_are_for_one_capability(
    trees: Mapping[PurePath, ast.Module],
) -> None:
    found = density.used_once(trees)
    assert sum(map(len, found.values())) <= MOST_USED_ONCE


def test_a_class_has_a_name_that_no_other_has(trees: Mapping[PurePath, ast.Module]) -> None:
    files = defaultdict[str, list[str]](list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(path))
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_no_module_needs_itself(trees: Mapping[PurePath, ast.Module]) -> None:
    """Imports for types count, too."""
    modules = {name(path): path for path in trees}
    needs = {module: set(imported(trees[path], modules.keys())) for module, path in modules.items()}
    assert [module for module in modules if module in reached(module, needs)] == []


def name(path: PurePath) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module, modules: Collection[str]) -> Iterator[str]:
    """The modules of the product from which a module imports something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = inner if inner in modules else node.module
                if found in modules:
                    yield found


def reached(module: str, needs: Mapping[str, set[str]]) -> set[str]:
    """The modules that a module needs, directly or not."""
    found: set[str] = set()
    left = [*needs[module]]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += needs[one]
    return found

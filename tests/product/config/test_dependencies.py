"""What the product imports is installed with it: the image holds its dependencies, not those of its tests."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("mpijob_elastic", "webhook", "upgrade")


def normal(name: str) -> str:
    """Return a distribution's name as packaging.python.org/specifications/name-normalization compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(source: str) -> set[str]:
    """Return the packages that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


def test_the_product_imports_only_what_is_installed_with_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {normal(re.split(r"[^\w.-]", line)[0]) for line in project["dependencies"]}
    sources = [file.read_text() for folder in PRODUCT for file in (ROOT / folder).rglob("*.py")]
    packages = set().union(*map(imported, sources)) - sys.stdlib_module_names - {*PRODUCT}
    provided = packages_distributions()
    foreign = {
        package
        for package in packages
        if not declared & set(map(normal, provided.get(package, ())))
    }
    assert not foreign
    assert "msgspec" in packages

"""Each capability can be taken away: without its room and its entries in the lists the rest is whole."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = Path("mpijob_elastic/capabilities")
ROOMS = sorted(path.parent.name for path in (ROOT / LISTS).glob("*/__init__.py"))
PRODUCT = ("mpijob_elastic", "webhook", "upgrade")
TESTED = (*PRODUCT, "tests", "lab", "scripts", "requirements", "pyproject.toml")
# Tests of the core, chosen because they are quick; in those of MEET each file has one case in which
# that room acts.
CORE = (
    "decide/test_drain.py",
    "decide/test_frozen_execs.py",
    "decide/test_host_names.py",
    "decide/test_lost_ranks.py",
    "decide/test_rank0_loss.py",
    "controller/test_left_behind.py",
    "observe/test_operators.py",
    "observe/test_views.py",
)
MEET = {
    "disruption": (
        "decide/test_host_list.py",
        "decide/test_launcher_start.py",
        "decide/test_lost_workers.py",
    )
}
IMPORTS = """
import pkgutil, sys
from importlib import import_module
for top in ("mpijob_elastic", "webhook", "upgrade"):
    package = import_module(top)
    assert package.__file__.startswith(sys.argv[1]), package.__file__
    for module in pkgutil.walk_packages(package.__path__, f"{top}."):
        import_module(module.name)
"""


class Without(ast.NodeTransformer):
    """Takes away the imports from a room, and the entries in lists of what they bring."""

    def __init__(self, room: str) -> None:
        self._room = ".".join((*LISTS.parts, room))
        self._brought: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        if not f"{node.module}.".startswith(f"{self._room}."):
            return node
        self._brought |= {alias.asname or alias.name for alias in node.names}
        return None

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        node.elts = [entry for entry in node.elts if named(entry) not in self._brought]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        assert node.id not in self._brought, (
            f"line {node.lineno} is neither an import nor an entry of a list"
        )
        return node


def named(entry: ast.expr) -> str:
    """The name that an entry begins with: `Kueue`, `KueueAdmission()`, `(kueue.OPTION, kueue.Watch)`."""
    while isinstance(entry, ast.Call | ast.Attribute | ast.Starred | ast.Tuple):
        if isinstance(entry, ast.Tuple):
            entry = entry.elts[0]
        else:
            entry = entry.func if isinstance(entry, ast.Call) else entry.value
    return entry.id if isinstance(entry, ast.Name) else ""


def without(text: str, room: str) -> str:
    """A list without its lines about a room."""
    return ast.unparse(Without(room).visit(ast.parse(text)))


@contextmanager
def apart(room: str, parts: Sequence[str], folder: Path) -> Iterator[Path]:
    """A copy of these parts without a room, and without the words that tests have for it."""
    for part in parts:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("*.go", "bin"))
        else:
            shutil.copy(source, folder / part)
    shutil.rmtree(folder / LISTS / room)
    # A room without words of its own has no such file.
    (folder / f"tests/rooms/{room}.py").unlink(missing_ok=True)
    for listed in (folder / LISTS).glob("*.py"):
        listed.write_text(without(listed.read_text(), room))
    yield folder
    shutil.rmtree(folder)


def ran(folder: Path, *command: str) -> str:
    """What a command says that fails in a copy, "" if it succeeds."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout[-3000:] + done.stderr[-3000:] if done.returncode else ""


@pytest.mark.thorough
@pytest.mark.parametrize("room", ROOMS)
def test_the_rest_can_be_imported_without_a_room(room: str, tmp_path: Path) -> None:
    with apart(room, PRODUCT, tmp_path) as folder:
        assert not ran(folder, "-c", IMPORTS, str(folder))


@pytest.mark.campaign
@pytest.mark.parametrize("room", ROOMS)
def test_the_rest_is_whole_without_a_room(room: str, tmp_path: Path) -> None:
    meet = [path for other, paths in MEET.items() if other != room for path in paths]
    core = [f"tests/product/{path}" for path in (*CORE, *meet)]
    with apart(room, TESTED, tmp_path) as folder:
        assert not ran(
            folder, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *core
        )


BOTH = """
from mpijob_elastic.capabilities.a import A, x
from mpijob_elastic.capabilities.ab import B
ALL = (A(), B())
"""


def test_a_room_is_its_imports_and_its_entries() -> None:
    assert without(BOTH + "ONE = (A, x.y(B))", "a").splitlines()[1:] == ["ALL = (B(),)", "ONE = ()"]
    with pytest.raises(AssertionError, match="line 5"):
        without(BOTH + "sign = x.sign", "a")

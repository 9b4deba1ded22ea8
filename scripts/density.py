"""Report how dense the code is, beside how many lines it has.

python scripts/density.py [FILE_OR_FOLDER...]     the product, without arguments; --files: a row for each file
python scripts/density.py --since REVISION        compare with that revision of the product

lines: lines of code, without blank lines, comments, docstrings and imports. per 100: `and`, `or` and conditional
expressions in 100 lines of code and imports. The report ends with the functions that have the most branches, and
with the extension points that a single capability uses. It sets no limit.
"""

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeGuard

PRODUCT = ("mpijob_elastic", "webhook", "upgrade")
CAPABILITIES = PurePath("mpijob_elastic/capabilities")
# The classes by which a capability extends the core: where each is defined.
BASES: Mapping[str, PurePath] = {
    "Capability": PurePath("mpijob_elastic/decide/capability.py"),
    "Shown": PurePath("mpijob_elastic/decide/shown.py"),
    "CapabilityFacts": PurePath("mpijob_elastic/model/job_facts.py"),
    "CapabilityAdmission": PurePath("mpijob_elastic/admission/interface.py"),
    "CapabilityWriter": PurePath("mpijob_elastic/act/capability_writes.py"),
}
MOST_BRANCHES = 10  # functions in the report

Sources = Mapping[PurePath, str]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.comprehension,
    ast.Assert,
)


@dataclass(frozen=True)
class Density:
    """The size of some code, and how much its lines carry."""

    #: Lines of code without imports.
    lines: int = 0
    #: Lines of imports.
    imports: int = 0
    #: Each `and` and `or`, and each conditional expression.
    joins: int = 0

    def __add__(self, other: "Density") -> "Density":
        return Density(
            self.lines + other.lines, self.imports + other.imports, self.joins + other.joins
        )

    @property
    def per_100(self) -> float:
        """Joins in 100 lines of code and imports."""
        return 100 * self.joins / max(self.lines + self.imports, 1)


@dataclass(frozen=True)
class _Class:
    """A class of the product."""

    path: PurePath
    bases: frozenset[str]
    #: Public names that its body defines.
    members: frozenset[str]


def code_lines(source: str) -> int:
    """Return the number of lines of code in a Python source, without imports."""
    return density(source, ast.parse(source)).lines


def density(source: str, tree: ast.Module) -> Density:
    """Measure one Python source."""
    code = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    imports: set[int] = set()
    joins = 0
    for node in ast.walk(tree):
        joins += _joins(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= code & _span(node)
        elif _has_docstring(node):
            code -= _span(node.body[0])
    return Density(len(code - imports), len(imports), joins)


def branches(tree: ast.Module) -> list[tuple[int, str]]:
    """Count the branches of each function: conditions, loops, handlers, asserts, and each `and` and `or`."""
    found: list[tuple[int, str]] = []
    _count_branches(tree, found)
    return found


def most_branches(trees: Mapping[PurePath, ast.Module]) -> list[tuple[int, str]]:
    """Return the functions that have the most branches, with their number."""
    found = (
        (count, f"{path}:{name}") for path, tree in trees.items() for count, name in branches(tree)
    )
    return sorted(found, reverse=True)[:MOST_BRANCHES]


def used_once(trees: Mapping[PurePath, ast.Module]) -> Mapping[str, Mapping[str, str]]:
    """Return by base class the members that a single capability defines, with its name.

    Raises LookupError if a base class is not where BASES says.
    """
    classes = defaultdict[str, list[_Class]](list)
    for path, tree in trees.items():
        for name, found in _classes(path, tree):
            classes[name].append(found)
    return {
        name: dict(_used_once(name, _base(name, path, classes), classes))
        for name, path in BASES.items()
    }


def read_files(places: Iterable[Path]) -> Sources:
    """Read the Python files among these files and folders."""
    return {
        PurePath(file): file.read_text()
        for place in places
        for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    }


def read_revision(revision: str) -> Sources:
    """Read the product's Python files at a revision."""
    command = ["git", "archive", revision, *PRODUCT]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {
            PurePath(member.name): file.read().decode()
            for member in tar
            if member.name.endswith(".py") and (file := tar.extractfile(member)) is not None
        }


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", type=Path, metavar="FILE_OR_FOLDER")
    parser.add_argument("--files", action="store_true", help="a row for each file")
    parser.add_argument(
        "--since", metavar="REVISION", help="compare with this revision of the product"
    )
    options = parser.parse_args()
    places = options.places or [Path(place) for place in PRODUCT]
    sources = read_files(places)
    trees = {path: ast.parse(source) for path, source in sources.items()}
    now = {path: density(source, trees[path]) for path, source in sources.items()}
    before = _before(options.since, places) if options.since else None
    sys.stdout.writelines(
        f"{line}\n" for line in _table(now, before, by_file=options.files, since=options.since)
    )
    sys.stdout.write("\nbranches  function\n")
    sys.stdout.writelines(f"{count:8}  {name}\n" for count, name in most_branches(trees))
    if not options.places:
        sys.stdout.writelines(_extension_points(trees))


def _before(revision: str, places: Iterable[Path]) -> Mapping[PurePath, Density]:
    return {
        path: density(source, ast.parse(source))
        for path, source in read_revision(revision).items()
        if any(path.is_relative_to(place) for place in places)
    }


def _table(
    now: Mapping[PurePath, Density],
    before: Mapping[PurePath, Density] | None,
    *,
    by_file: bool,
    since: str | None,
) -> Iterator[str]:
    """Yield a row for each folder or file, the densest first, and one for the total."""
    yield f"per 100   lines  imports  place{f', and the change since {since}' if since else ''}"
    rows = _sums(now, by_file=by_file)
    old_rows = _sums(before or {}, by_file=by_file)
    for place in sorted(rows | old_rows, key=lambda one: -rows.get(one, Density()).per_100):
        old = None if before is None else old_rows.get(place, Density())
        yield _row(rows.get(place, Density()), old, place)
    old = None if before is None else sum(before.values(), Density())
    yield _row(sum(now.values(), Density()), old, f"total of {len(now)} files")


def _row(now: Density, old: Density | None, place: str) -> str:
    row = f"{now.per_100:7.1f}  {now.lines:6}  {now.imports:7}  {place}"
    if old is None or old == now:
        return row
    return f"{row}  ({now.per_100 - old.per_100:+.1f}, {now.lines - old.lines:+} lines)"


def _sums(found: Mapping[PurePath, Density], *, by_file: bool) -> dict[str, Density]:
    sums = defaultdict[str, Density](Density)
    for path, measured in found.items():
        sums[str(path) if by_file else _folder(path)] += measured
    return sums


def _folder(path: PurePath) -> str:
    """Return the package of a file: of mpijob_elastic its part, else the top one."""
    parts = path.parts[:-1]
    return "/".join(parts[:2] if parts[:1] == ("mpijob_elastic",) else parts[:1])


def _extension_points(trees: Mapping[PurePath, ast.Module]) -> Iterator[str]:
    yield "\nextension points that a single capability uses\n"
    for base, members in used_once(trees).items():
        for member, capability in members.items():
            yield f"  {base}.{member}: {capability}\n"


def _used_once(
    name: str, base: _Class, classes: Mapping[str, list[_Class]]
) -> Iterator[tuple[str, str]]:
    """Yield the members that one capability, or one file outside the capabilities, defines."""
    users = defaultdict[str, set[str]](set)
    for found in _below(name, classes):
        for member in base.members & found.members:
            users[member].add(_user(found.path))
    for member, capabilities in sorted(users.items()):
        if len(capabilities) == 1:
            yield member, capabilities.pop()


def _user(path: PurePath) -> str:
    if path.is_relative_to(CAPABILITIES):
        return path.relative_to(CAPABILITIES).parts[0]
    return str(path)


def _base(name: str, path: PurePath, classes: Mapping[str, list[_Class]]) -> _Class:
    for found in classes.get(name, []):
        if found.path == path:
            return found
    raise LookupError(f"no class {name} in {path}: mend BASES in scripts/density.py")


def _below(name: str, classes: Mapping[str, list[_Class]]) -> Iterator[_Class]:
    """Yield the classes that inherit from a name, directly or not."""
    for child, all_found in classes.items():
        for found in all_found:
            if name in found.bases and child != name:
                yield found
                yield from _below(child, classes)


def _classes(path: PurePath, tree: ast.Module) -> Iterator[tuple[str, _Class]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = frozenset(_last_name(base) for base in node.bases)
            names = frozenset(name for one in node.body for name in _defined(one))
            yield node.name, _Class(path, bases, names)


def _last_name(base: ast.expr) -> str:
    """Return the last word of a base class: CapabilityFacts of `job_facts.CapabilityFacts` and of `CapabilityFacts[F]`."""
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def _defined(node: ast.stmt) -> Iterator[str]:
    """Yield the public names that a statement in a class defines."""
    if isinstance(node, _Function):
        names = [node.name]
    elif isinstance(node, ast.AnnAssign):
        names = [ast.unparse(node.target)]
    elif isinstance(node, ast.Assign):
        names = [ast.unparse(target) for target in node.targets]
    else:
        names = []
    yield from (name for name in names if not name.startswith("_"))


def _count_branches(node: ast.AST, found: list[tuple[int, str]]) -> int:
    """Return the branches at and below a node, and add each function below it to `found`."""
    count = isinstance(node, _BRANCHES) + (_joins(node) if isinstance(node, ast.BoolOp) else 0)
    for child in ast.iter_child_nodes(node):
        count += _count_branches(child, found)
    if isinstance(node, _Function):
        found.append((count, node.name))
    return count


def _joins(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return int(isinstance(node, ast.IfExp))


def _has_docstring(node: ast.AST) -> TypeGuard[ast.Module | ast.ClassDef | _Function]:
    return (
        isinstance(node, ast.Module | ast.ClassDef | _Function)
        and ast.get_docstring(node, clean=False) is not None
    )


def _span(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


if __name__ == "__main__":
    main()

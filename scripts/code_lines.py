"""Count lines of code: without blank lines, comments, imports and docstrings.

python scripts/code_lines.py [FILE_OR_FOLDER...]     the product, without arguments; with --files a row for each file
python scripts/code_lines.py --since REVISION        how many lines of code the product gained since then
"""

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

PRODUCT = ("mpijob_elastic", "webhook", "upgrade")


def code_lines(source: str) -> int:
    """Return the number of lines of code in a Python source."""
    lines: set[int] = set()
    ignored = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.difference_update(_span(node))
        elif (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
        ):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.difference_update(_span(first) if isinstance(first.value.value, str) else ())
    return len(lines)


def counts(places: list[Path]) -> dict[Path, int]:
    """Return the lines of code of each Python file in these files and folders."""
    files = (
        file
        for place in places
        for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    )
    return {file: code_lines(file.read_text()) for file in files}


def total_at(revision: str) -> int:
    """Return the product's lines of code at a revision."""
    command = ["git", "archive", revision, *PRODUCT]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    return sum(code_lines(source) for source in _sources(archive))


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", type=Path, default=[Path(place) for place in PRODUCT])
    parser.add_argument("--files", action="store_true", help="a row for each file")
    parser.add_argument(
        "--since", metavar="REVISION", help="compare the product with this revision"
    )
    asked = parser.parse_args()
    found = counts(asked.places)
    if asked.files:
        sys.stdout.writelines(f"{lines:6} {file}\n" for file, lines in found.items())
    total = sum(found.values())
    gained = f", {total - total_at(asked.since):+} since {asked.since}" if asked.since else ""
    sys.stdout.write(f"{total} lines of code in {len(found)} files{gained}\n")


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _sources(archive: bytes) -> Iterator[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                yield file.read().decode()


if __name__ == "__main__":
    main()

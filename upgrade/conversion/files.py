"""Convert a file, a folder with its subfolders, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from upgrade.conversion import documents
from upgrade.conversion.results import Converted
from upgrade.refusal import Refused

STANDARD_INPUT = Path("-")
_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, kw_only=True)
class File:
    """The result for a file; name: relative to the given path."""

    name: Path
    objects: tuple[Converted, ...]


def convert(source: Path) -> list[File]:
    """Convert everything before anything is written. Raises `Refused` and OSError."""
    if source == STANDARD_INPUT:
        return [_converted(sys.stdin.read(), Path("stdin.yaml"))]
    if not source.is_dir():
        return [_converted(source.read_text(), Path(source.name))]
    found = sorted(path for path in source.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    if not found:
        raise Refused(f"{source} holds no {', '.join(_SUFFIXES)} files; name a folder with manifests")
    return [_converted(path.read_text(), path.relative_to(source)) for path in found]


def write(files: Iterable[File], folder: Path | None, *, say: Callable[[str], None]) -> None:
    """Write YAML to standard output, or to files of the same names below `folder`; notes go to `say`.

    Raises `Refused` if a file already exists, before anything is written, and OSError.
    """
    all_files = list(files)
    for file in all_files:
        for one in file.objects:
            for note in one.notes:
                say(f"{file.name}: {one.subject}: {note}")
    if folder is None:
        objects = [one for file in all_files for one in file.objects]
        sys.stdout.write(documents.render(objects))
        return
    targets = {folder / file.name.with_suffix(".yaml"): file for file in all_files}
    if there := [str(path) for path in targets if path.exists()]:
        raise Refused(f"{', '.join(there)}: already exists; choose an empty folder for --output")
    for path, file in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(documents.render(file.objects))


def _converted(text: str, name: Path) -> File:
    return File(name=name, objects=tuple(documents.convert_text(text, where=str(name))))

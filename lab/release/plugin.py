"""The kubectl plugin: a script, and beside it mpijob-elastic with the locked wheels, so that it needs Python only.

A wheel that is compiled differs from Python to Python in nothing but its extension modules, whose names say for which
Python they are. So one folder serves them all. It is unpacked, not a zipapp, because no Python loads an extension
module from a zip file.
"""

import itertools
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.build import Say
from lab.errors import LabError
from lab.images.archive import Entry, File, tree
from lab.images.product.image import PROJECT, ROOT, WHEELS
from lab.images.running import run
from lab.release.archives import write_tgz

COMMAND: str = next(name for name in PROJECT["project"]["scripts"] if name.startswith("kubectl-"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_LIBRARY = "lib"
# What only an installer needs, and what names a single Python.
_LEFT_OUT = {"RECORD", "WHEEL", "INSTALLER", "REQUESTED"}
_SCRIPT = f"""\
#!/usr/bin/env python3
import os
import sys

if "%d.%d" % sys.version_info[:2] not in {PYTHONS!r}:
    sys.exit("{COMMAND} needs Python {PYTHONS[0]} to {PYTHONS[-1]}; python3 is %s" % sys.version.split()[0])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "{_LIBRARY}"))
from mpijob_elastic.__main__ import main

main()
"""


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A platform in the words of Go, and its wheels in those of uv."""

    os: str
    arch: str
    wheels: str

    def archive(self, version: str) -> str:
        """Return the name of the plugin's archive."""
        return f"{COMMAND}-{version}-{self.os}-{self.arch}.tar.gz"


# Not darwin/amd64, for which cryptography has no wheels any more.
PLATFORMS = (
    Platform(os="linux", arch="amd64", wheels="x86_64-manylinux_2_28"),
    Platform(os="linux", arch="arm64", wheels="aarch64-manylinux_2_28"),
    Platform(os="darwin", arch="arm64", wheels="aarch64-apple-darwin"),
)


def write(target: Path, platform: Platform, *, wheel: Path, folder: Path, say: Say) -> None:
    """Write the archive for a platform; `folder` is an empty one to work in. Raise LabError."""
    for python in PYTHONS:
        say(f"wheels for {platform.os}/{platform.arch}, Python {python}")
        _install(folder / python, platform=platform, python=python, say=say)
    pack(target, libraries=(tree(folder / python) for python in PYTHONS), wheel=wheel)


def pack(target: Path, *, libraries: Iterable[Mapping[str, Entry]], wheel: Path) -> None:
    """Write the archive of what is installed for each Python. Raise LabError if one folder cannot serve all."""
    with zipfile.ZipFile(wheel) as ours:
        own: dict[str, Entry] = {name: File(content=ours.read(name)) for name in ours.namelist()}
    library = merged([*libraries, own])
    entries: dict[str, Entry] = {f"{_LIBRARY}/{path}": entry for path, entry in library.items()}
    entries[COMMAND] = File(content=_SCRIPT.encode(), mode=0o755)
    entries["LICENSE"] = File(content=ROOT / "LICENSE")
    write_tgz(target, entries)


def merged(libraries: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    """Return one library that has the files of all. Raise LabError if they differ in more than their metadata."""
    found: dict[str, Entry] = {}
    for path, entry in itertools.chain.from_iterable(one.items() for one in libraries):
        folder, *rest = path.split("/")
        metadata = folder.endswith(".dist-info")
        if not isinstance(entry, File) or folder == "bin" or (metadata and rest[-1] in _LEFT_OUT):
            continue
        before = found.setdefault(path, entry)
        if not metadata and _content(before) != _content(entry):
            raise LabError(f"{path} is not the same for each Python of {', '.join(PYTHONS)}; give each its own folder.")
    return found


def _install(folder: Path, *, platform: Platform, python: str, say: Say) -> None:
    target = (f"--target={folder}", f"--python-platform={platform.wheels}", f"--python-version={python}")
    locked = ("--require-hashes", "--only-binary=:all:", f"--requirement={WHEELS}")
    run([str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", *target, *locked], say=say)


def _content(entry: Entry | None) -> bytes:
    assert isinstance(entry, File)
    return entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()

"""Layers of images: tar files whose bytes depend on nothing but their content.

Every entry is root's and from 1970. The order is that of the names, and permissions do not depend
on a umask.
"""

import gzip
import io
import shutil
import stat
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of a layer: its content, or the path of a file to copy; `mode` as for chmod."""

    content: bytes | Path
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    """A symbolic link of a layer."""

    target: str


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of a layer that may be empty."""

    mode: int = 0o755


Entry = File | Link | Folder


def write_layer(target: Path, entries: Mapping[str, Entry]) -> None:
    """Write an uncompressed layer; `entries` by path without the leading slash, whose folders are made."""
    folders: dict[str, Entry] = {parent: Folder() for name in entries for parent in _folders(name)}
    with tarfile.open(target, "w") as tar:
        for name, entry in sorted({**folders, **entries}.items()):
            match entry:
                case Folder(mode=mode):
                    tar.addfile(info(name, type=tarfile.DIRTYPE, mode=mode))
                case Link(link):
                    tar.addfile(info(name, type=tarfile.SYMTYPE, mode=0o777, linkname=link))
                case File(content=content, mode=mode):
                    data = content if isinstance(content, bytes) else content.read_bytes()
                    tar.addfile(info(name, mode=mode, size=len(data)), io.BytesIO(data))


def tree(root: Path, *, below: str = "") -> dict[str, Entry]:
    """Return what is in a folder, or in its part `below`, as entries of a layer."""
    return {str(path.relative_to(root)): _entry(path) for path in (root / below).rglob("*")}


def compress(plain: Path, target: Path) -> None:
    """Write a file's compressed copy, which depends on its content and the release of zlib."""
    with (
        plain.open("rb") as source,
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        shutil.copyfileobj(source, file)


def info(
    name: str, *, mode: int, type: bytes = tarfile.REGTYPE, size: int = 0, linkname: str = ""
) -> tarfile.TarInfo:
    """Return the header of an entry that is root's and from 1970."""
    header = tarfile.TarInfo(name)
    header.mode, header.type, header.size, header.linkname = mode, type, size, linkname
    return header


def _entry(path: Path) -> Entry:
    mode = path.lstat().st_mode
    if path.is_symlink():
        return Link(str(path.readlink()))
    if path.is_dir():
        return Folder(mode=0o1777 if mode & stat.S_ISVTX else 0o755)
    return File(content=path, mode=0o755 if mode & stat.S_IXUSR else 0o644)


def _folders(name: str) -> list[str]:
    return [str(parent) for parent in Path(name).parents if str(parent) != "."]

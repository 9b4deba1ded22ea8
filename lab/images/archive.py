"""Writes layers, and images in the format of `docker save` (docker-archive), with tarfile.

umoci and skopeo could do it as well, but are two more packages to install and two more copies of each layer on the way,
for what is a manifest, a configuration and the layers in one tar:
https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format
"""

import hashlib
import io
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

# What Go, and so every image, calls a machine that Python calls otherwise.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Default command and environment of a container of the image; PATH is always set."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> dict[str, list[str]]:
        """Return the `config` of an image's configuration."""
        environment = {"PATH": DEFAULT_PATH, **self.environment}
        return {"Env": [f"{name}={value}" for name, value in environment.items()], "Cmd": list(self.command)}


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of a layer: its content, or the path of a file to copy; `mode` as for chmod."""

    content: bytes | Path
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    """A symbolic link of a layer."""

    target: str


def write_layer(target: Path, entries: Mapping[str, File | Link]) -> None:
    """Write an uncompressed layer of root's; `entries` by path without the leading slash, whose folders are made."""
    with tarfile.open(target, "w") as tar:
        for folder in sorted({parent for name in entries for parent in _folders(name)}):
            tar.addfile(_info(folder, type=tarfile.DIRTYPE, mode=0o755))
        for name, entry in sorted(entries.items()):
            match entry:
                case Link(link):
                    tar.addfile(_info(name, type=tarfile.SYMTYPE, mode=0o777, linkname=link))
                case File(content=content, mode=mode):
                    data = content if isinstance(content, bytes) else content.read_bytes()
                    tar.addfile(_info(name, mode=mode, size=len(data)), io.BytesIO(data))


def write_image(target: Path, *, reference: str, layers: Sequence[Path], settings: Settings) -> None:
    """Write an image called `reference` (NAME:TAG) of uncompressed layers, the lowest one first."""
    digests = [_digest(layer) for layer in layers]
    configuration = msgspec.json.encode(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": settings.encode(),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }
    )
    named = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = [{"Config": named, "RepoTags": [reference], "Layers": [f"{digest}/layer.tar" for digest in digests]}]
    with tarfile.open(target, "w") as tar:
        for name, data in {named: configuration, "manifest.json": msgspec.json.encode(manifest)}.items():
            tar.addfile(_info(name, mode=0o644, size=len(data)), io.BytesIO(data))
        for digest, layer in zip(digests, layers, strict=True):
            with layer.open("rb") as file:
                size = layer.stat().st_size
                tar.addfile(_info(f"{digest}/layer.tar", mode=0o644, size=size), file)


def _folders(name: str) -> list[str]:
    return [str(parent) for parent in Path(name).parents if str(parent) != "."]


def _info(name: str, *, mode: int, type: bytes = tarfile.REGTYPE, size: int = 0, linkname: str = "") -> tarfile.TarInfo:  # noqa: A002
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.size, info.linkname = mode, type, size, linkname
    return info


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

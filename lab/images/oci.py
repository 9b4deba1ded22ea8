"""Writes images as OCI archives: a tar of a manifest, a configuration and the layers, each named by its digest.

`manifest.json` is beside them for what only reads the format of `docker save`:
https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md
https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format
"""

import hashlib
import io
import platform
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from lab.images.archive import compress, info

# What Go, and so every image, calls a machine that Python calls otherwise.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TYPE = "application/vnd.oci.image"
_INDEX, _SAVED = "index.json", "manifest.json"
EPOCH = datetime.fromtimestamp(
    0, UTC
)  # when each image was created, so that its digest depends on its content only


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a container of the image runs: entrypoint, default arguments, environment (with PATH), user, labels."""

    command: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> dict[str, Any]:
        """Return the `config` of an image's configuration."""
        environment = {"PATH": DEFAULT_PATH, **self.environment}
        given = {
            "Entrypoint": list(self.entrypoint),
            "User": self.user,
            "Labels": dict(self.labels),
        }
        return {
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Cmd": list(self.command),
            **{name: value for name, value in given.items() if value},
        }


@dataclass(frozen=True, kw_only=True)
class _Blob:
    kind: str
    data: bytes | Path
    digest: str
    size: int

    @classmethod
    def of(cls, kind: str, data: bytes | Path) -> "_Blob":
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        return cls(kind=kind, data=data, digest=_sha256(data), size=size)

    @property
    def path(self) -> str:
        return f"blobs/sha256/{self.digest}"

    def describe(self) -> dict[str, Any]:
        return {
            "mediaType": f"{_TYPE}.{self.kind}",
            "digest": f"sha256:{self.digest}",
            "size": self.size,
        }


def architecture() -> str:
    """Return what images call this machine's processor, as amd64."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def write_image(
    target: Path,
    *,
    reference: str,
    layers: Sequence[Path],
    settings: Settings,
    compress: bool = False,
) -> None:
    """Write an image called `reference` (NAME:TAG) of uncompressed layers, the lowest one first.

    The digest depends on the layers and settings; with `compress`, also on the release of zlib.
    """
    configuration = _Blob.of(
        "config.v1+json",
        msgspec.json.encode(
            {
                "architecture": architecture(),
                "os": "linux",
                "created": EPOCH,
                "config": settings.encode(),
                "rootfs": {
                    "type": "layers",
                    "diff_ids": [f"sha256:{_sha256(layer)}" for layer in layers],
                },
            }
        ),
    )
    blobs = [
        _compressed(layer, target) if compress else _Blob.of("layer.v1.tar", layer)
        for layer in layers
    ]
    described = {"config": configuration.describe(), "layers": [blob.describe() for blob in blobs]}
    manifest = _Blob.of("manifest.v1+json", msgspec.json.encode(_document("manifest", described)))
    index = _document(
        "index", {"manifests": [{**manifest.describe(), "annotations": _names(reference)}]}
    )
    saved = [
        {
            "Config": configuration.path,
            "RepoTags": [reference],
            "Layers": [blob.path for blob in blobs],
        }
    ]
    with tarfile.open(target, "w") as tar:
        _add(tar, "oci-layout", msgspec.json.encode({"imageLayoutVersion": "1.0.0"}))
        _add(tar, _INDEX, msgspec.json.encode(index))
        _add(tar, _SAVED, msgspec.json.encode(saved))
        for blob in {one.path: one for one in (manifest, configuration, *blobs)}.values():
            _add(tar, blob.path, blob.data)


def digest(archive: Path) -> str:
    """Return the digest by which a registry knows the image of an archive."""
    with tarfile.open(archive) as tar:
        found: str = _document_of(tar, _INDEX)["manifests"][0]["digest"]
    return found


def write_renamed(target: Path, archive: Path, *, reference: str) -> None:
    """Write the image of an archive under another name; its digest stays."""
    with tarfile.open(archive) as source, tarfile.open(target, "w") as tar:
        index, saved = _document_of(source, _INDEX), _document_of(source, _SAVED)
        index["manifests"][0]["annotations"] = _names(reference)
        saved[0]["RepoTags"] = [reference]
        changed = {_INDEX: msgspec.json.encode(index), _SAVED: msgspec.json.encode(saved)}
        for entry in source:
            if entry.name in changed:
                _add(tar, entry.name, changed[entry.name])
            else:
                tar.addfile(entry, source.extractfile(entry))


def read_layers(archive: Path) -> Iterator[tarfile.TarFile]:
    """Yield the layers of the image of an archive, the lowest one first; each is open until the next one."""
    with tarfile.open(archive) as tar:
        (image,) = _document_of(tar, _SAVED)
        for name in image["Layers"]:
            with tarfile.open(fileobj=tar.extractfile(name)) as layer:
                yield layer


def full(reference: str) -> str:
    """Return a reference as nodes keep it: with a registry, and on Docker Hub with a namespace."""
    first, slash, _ = reference.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return reference
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"


def _names(reference: str) -> dict[str, str]:
    return {
        "io.containerd.image.name": full(reference),
        "org.opencontainers.image.ref.name": full(reference),
    }


def _document(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": f"{_TYPE}.{kind}.v1+json", **content}


def _document_of(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    assert file is not None
    return msgspec.json.decode(file.read())


def _compressed(layer: Path, target: Path) -> _Blob:
    packed = target.with_name(f"{layer.name}.gz")
    compress(layer, packed)
    return _Blob.of("layer.v1.tar+gzip", packed)


def _add(tar: tarfile.TarFile, name: str, data: bytes | Path) -> None:
    if isinstance(data, bytes):
        tar.addfile(info(name, mode=0o644, size=len(data)), io.BytesIO(data))
    else:
        with data.open("rb") as file:
            tar.addfile(info(name, mode=0o644, size=data.stat().st_size), file)


def _sha256(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

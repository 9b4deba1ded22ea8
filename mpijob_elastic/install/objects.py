"""Kubernetes objects as plain data, and their identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, order=True)
class Identity:
    """Identifies an object; namespace is "" for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def identity(manifest: Manifest) -> Identity:
    """Return the identity of the manifest's object."""
    metadata = manifest["metadata"]
    return Identity(
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
    )


def by_identity(manifests: Iterable[Manifest]) -> dict[Identity, Manifest]:
    """Return the manifests by identity, in the same order."""
    return {identity(manifest): manifest for manifest in manifests}

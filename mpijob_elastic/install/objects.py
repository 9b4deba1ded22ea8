"""Kubernetes objects as plain data, and their identity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

Manifest = Mapping[str, Any]

# The API server writes these on every object.
_SERVERS_OWN = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"})

read = msgspec.json.Decoder(dict[str, Any]).decode


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


def own_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata without what the API server writes on every object."""
    return {key: value for key, value in manifest["metadata"].items() if key not in _SERVERS_OWN}


def by_identity(manifests: Iterable[Manifest]) -> dict[Identity, Manifest]:
    """Return the manifests by identity, in the same order."""
    return {identity(manifest): manifest for manifest in manifests}

"""Kubernetes objects as plain data, their identity, and the outcome and difference for each."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from mpijob_elastic.kube import kubectl_yaml

Manifest = Mapping[str, Any]

# The API server writes these on every object.
_SERVERS_OWN = frozenset(
    {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"}
)

read = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, kw_only=True, order=True)
class ObjectIdentity:
    """Identifies an object; namespace is "" for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.namespace}/{self.name}"
            if self.namespace
            else f"{self.kind} {self.name}"
        )


def identity(manifest: Manifest) -> ObjectIdentity:
    """Return the identity of the manifest's object."""
    metadata = manifest["metadata"]
    return ObjectIdentity(
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
    )


def own_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata without what the API server writes on every object."""
    return {key: value for key, value in manifest["metadata"].items() if key not in _SERVERS_OWN}


def by_identity(manifests: Iterable[Manifest]) -> dict[ObjectIdentity, Manifest]:
    """Return the manifests by identity, in the same order."""
    return {identity(manifest): manifest for manifest in manifests}


class Outcome(StrEnum):
    """The outcome for an object, in the words of `kubectl apply`."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    #: The API server does not serve the kind, or the object was left alone.
    SKIPPED = "skipped"
    DELETED = "deleted"


@dataclass(frozen=True, kw_only=True)
class ObjectChange:
    """The outcome for one object."""

    identity: ObjectIdentity
    outcome: Outcome
    #: A unified diff of an object that changed.
    difference: str = ""
    #: Anything to add.
    note: str = ""
    #: The API server could not check the object, because its namespace does not exist yet.
    unchecked: bool = False


# Tells the user of an object, or of anything else in words.
Say = Callable[[ObjectChange | str], None]
# Asks the user to confirm.
Ask = Callable[[], bool]


def changed(
    one: ObjectIdentity, before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> ObjectChange:
    """Return the change from the live object `before` (None: there was none) to `after`."""
    if before is None:
        return ObjectChange(identity=one, outcome=Outcome.CREATED)
    old, new = _compared(before), _compared(after)
    if old == new:
        return ObjectChange(identity=one, outcome=Outcome.UNCHANGED)
    difference = "\n".join(
        difflib.unified_diff(_lines(old), _lines(new), "live", "wanted", lineterm="")
    )
    return ObjectChange(identity=one, outcome=Outcome.CONFIGURED, difference=difference)


def _compared(live: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in live.items() if key != "status"} | {
        "metadata": own_metadata(live)
    }


def _lines(content: Mapping[str, Any]) -> list[str]:
    return kubectl_yaml.dump(content, sort_keys=True).splitlines()

"""Tell whether the MPIJob definition keeps the workers' selector; pure.

The selector is useful only if the scale subresource reads it, and stays only if no schema prunes it.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mpijob_elastic.kube.resources import MPI_JOBS

SELECTOR = ("status", "replicaStatuses", "Worker", "selector")
_PATH = "." + ".".join(SELECTOR)


def keeps_selector(raw: bytes) -> bool:
    """Return True if this CustomResourceDefinition keeps it. Raises msgspec.DecodeError if it is no JSON object."""
    spec = msgspec.json.decode(raw, type=dict[str, Any]).get("spec", {})
    version: dict[str, Any] = next(
        (found for found in spec.get("versions", ()) if found["name"] == MPI_JOBS.version), {}
    )
    scale = version.get("subresources", {}).get("scale", {})
    if scale.get("labelSelectorPath") != _PATH:
        return False
    return bool(spec.get("preserveUnknownFields")) or _keeps(version.get("schema", {}).get("openAPIV3Schema", {}))


def _keeps(schema: Mapping[str, Any]) -> bool:
    for name in SELECTOR:
        child = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if not isinstance(child, Mapping):
            return bool(child or schema.get("x-kubernetes-preserve-unknown-fields"))
        schema = child
    return True

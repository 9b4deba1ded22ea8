"""Convert the MPIJob definition of apiextensions v1beta1, as in v0.2.3's manifest, to v1, scalable.

https://kubernetes.io/docs/reference/using-api/deprecation-guide/#customresourcedefinition-v122
"""

from upgrade import crd
from upgrade.conversion.results import Notes, Object, Source

_KEPT = ("group", "scope", "names")
_TOP = frozenset({*_KEPT, "version", "versions", "conversion", "preserveUnknownFields"}) | {
    *("subresources", "validation", "additionalPrinterColumns")
}


def convert(source: Source, notes: Notes) -> Object:
    """Return the definition in v1, with the same checks; fields without a check are kept. Raises `Refused`."""
    spec = source["spec"]
    notes.unknown(spec, _TOP, "spec")
    # v0.2.3's manifest has columns there, which no API server has ever read.
    notes.unknown(spec.get("validation", {}), frozenset({"openAPIV3Schema"}), "spec.validation")
    versions = spec.get("versions") or [{"name": spec["version"], "served": True, "storage": True}]
    legacy = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": source["kind"],
        "metadata": source["metadata"],
        "spec": {
            **{key: spec[key] for key in _KEPT if key in spec},
            "preserveUnknownFields": True,
            "versions": [_version(spec, version) for version in versions],
        },
    }
    return crd.upgraded(legacy, structural=True)


def _version(spec: Source, version: Source) -> Object:
    validation = version.get("schema") or spec.get("validation", {})
    columns = version.get("additionalPrinterColumns") or spec.get("additionalPrinterColumns", [])
    return {
        "name": version["name"],
        "served": version.get("served", True),
        "storage": version.get("storage", False),
        "schema": {"openAPIV3Schema": validation.get("openAPIV3Schema", {})},
        "subresources": version.get("subresources") or spec.get("subresources", {}),
        **({"additionalPrinterColumns": [_column(column) for column in columns]} if columns else {}),
    }


def _column(column: Source) -> Object:
    # v1beta1 spells the key in capitals.
    return {("jsonPath" if key == "JSONPath" else key): value for key, value in column.items()}

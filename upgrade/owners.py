"""Who else writes the MPIJob definition, as its field managers and kubectl's annotation say; pure.

The versions of a definition are one field for server-side apply: whoever applies one version applies all of them.
https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

import json
from collections.abc import Mapping
from typing import Any

from mpijob_elastic import names

# Where `kubectl apply` and Argo CD keep the manifest that they applied last.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# The managers of kubectl's commands that change an object once.
_ONCE = frozenset({"kubectl-create", "kubectl-edit", "kubectl-patch"})

Crd = Mapping[str, Any]


def writers(crd: Crd) -> list[str]:
    """Return the field managers of the versions that may write them again."""
    found = {str(entry["manager"]) for entry in _entries(crd)} - _ONCE
    return sorted(name for name in found if not name.startswith(names.PROGRAM))


def is_declared(crd: Crd) -> bool:
    """Return True if the manifest of somebody else has the scale subresource that the definition has."""
    applied = any(entry["operation"] == "Apply" for entry in _entries(crd))
    return (applied and _has_scale(crd)) or _has_scale(_last_applied(crd))


def _entries(crd: Crd) -> list[Mapping[str, Any]]:
    entries = crd["metadata"].get("managedFields", [])
    return [entry for entry in entries if "f:versions" in entry.get("fieldsV1", {}).get("f:spec", {})]


def _has_scale(crd: Crd) -> bool:
    versions = (crd.get("spec") or {}).get("versions") or []
    return any("scale" in (version.get("subresources") or {}) for version in versions)


def _last_applied(crd: Crd) -> Crd:
    try:
        found = json.loads(crd["metadata"].get("annotations", {}).get(LAST_APPLIED, ""))
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}

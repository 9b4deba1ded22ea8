"""MPIJob definitions as clusters have them."""

import base64
import copy
import gzip
import json
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

Object = dict[str, Any]
FOLDER = Path(__file__).parent / "crds"
STAY = ("v0.2.3", "administrator")


def definition(name: str) -> Object:
    """The definition crds/NAME.yaml; no two parts of it are one object, whatever anchors say."""
    loaded: Object = copy.deepcopy(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))
    return loaded


def v1(crd: Object) -> Object:
    """Its version v1."""
    found: Object = next(version for version in crd["spec"]["versions"] if version["name"] == "v1")
    return found


def applied(crd: Object, patch: list[Object]) -> Object:
    """Return the definition after a JSON patch; raises jsonpatch.JsonPatchTestFailed."""
    result: Object = jsonpatch.apply_patch(crd, patch)
    return result


def recorded_by_upgrade_apply(before: dict[str, Any]) -> dict[str, str]:
    """The data of the Secret that `upgrade apply` of version 0.2.0 made."""
    content = {
        "taken_at": "2026-01-01T00:00:00+00:00",
        "version": "0.2.0",
        "crd": before,
        "objects": [],
        "secrets": [],
    }
    packed = gzip.compress(json.dumps(content).encode())
    return {
        "before": base64.b64encode(packed).decode(),
        "sha256": base64.b64encode(b"0" * 64).decode(),
    }

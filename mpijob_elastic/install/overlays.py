"""The rendered manifests in this package, and combinations of overlays.

`manifests/OVERLAY.yaml` is `kubectl kustomize config/overlays/OVERLAY`. Overlays are combined by their differences from
the default; a test compares every combination with kustomize.
"""

from collections.abc import Collection
from enum import StrEnum
from importlib import resources

import jsonpatch
import yaml

from mpijob_elastic.install.customize import RIGHTS_TO_EVICT
from mpijob_elastic.install.objects import Manifest, by_identity

DEFAULT = "default"


class Overlay(StrEnum):
    """An overlay that can be added to the default."""

    CERT_MANAGER = "cert-manager"
    SINGLE_NAMESPACE = "single-namespace"
    PROMETHEUS = "prometheus"


def combined(overlays: Collection[Overlay]) -> list[Manifest]:
    """Return the manifests of the default with these overlays."""
    default = by_identity(rendered(DEFAULT))
    result = dict(default)
    for overlay in overlays:
        wanted = by_identity(rendered(overlay))
        for key in default.keys() - wanted.keys():
            result.pop(key, None)
        for key, manifest in wanted.items():
            if key not in default:
                result[key] = manifest
            elif key in result:  # another overlay may have removed it
                result[key] = jsonpatch.make_patch(default[key], manifest).apply(result[key])
    # single-namespace adds rights that cert-manager takes away.
    left_out = ("Role", "RoleBinding") if Overlay.CERT_MANAGER in overlays else ()
    return [one for key, one in result.items() if (key.name, key.kind in left_out) != (RIGHTS_TO_EVICT, True)]


def rendered(name: str) -> list[Manifest]:
    """Return the manifests in `manifests/NAME.yaml`."""
    text = resources.files("mpijob_elastic.install").joinpath("manifests", f"{name}.yaml").read_text()
    # libyaml's loader is ten times as fast; some builds of PyYAML lack it.
    return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))

"""The rendered manifests in this package, and combinations of overlays.

`manifests/default.yaml` is `kubectl kustomize config/overlays/default`. The other files hold what an overlay adds or
changes, as whole objects, and what it removes; a test compares every combination with kustomize.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from importlib import resources

import yaml

from mpijob_elastic.install.objects import Manifest, by_identity, identity

DEFAULT = "default"


class Overlay(StrEnum):
    """An overlay that can be added to the default."""

    CERT_MANAGER = "cert-manager"
    SINGLE_NAMESPACE = "single-namespace"
    PROMETHEUS = "prometheus"


# The files with differences, and the overlays that make them. With two, some objects are as with neither alone.
DIFFERENCES: Mapping[str, tuple[Overlay, ...]] = {
    **{overlay.value: (overlay,) for overlay in Overlay},
    "cert-manager+single-namespace": (Overlay.CERT_MANAGER, Overlay.SINGLE_NAMESPACE),
}


def combined(overlays: Collection[Overlay]) -> list[Manifest]:
    """Return the manifests of the default with these overlays."""
    result = by_identity(_read(DEFAULT))
    for manifest in [one for name, needed in DIFFERENCES.items() if {*needed} <= {*overlays} for one in _read(name)]:
        if manifest.get("$patch") == "delete":
            result.pop(identity(manifest), None)  # another overlay may have removed it
        else:
            result[identity(manifest)] = manifest
    return list(result.values())


def rendered(name: str) -> list[Manifest]:
    """Return the manifests of the default, or of the default with one overlay."""
    return combined([] if name == DEFAULT else [Overlay(name)])


def _read(name: str) -> list[Manifest]:
    text = resources.files("mpijob_elastic.install").joinpath("manifests", f"{name}.yaml").read_text()
    # libyaml's loader is ten times as fast; some builds of PyYAML lack it.
    return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))

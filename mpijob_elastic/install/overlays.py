"""The rendered manifests in this package, and combinations of overlays.

`manifests/OVERLAY.yaml` is `kubectl kustomize config/overlays/OVERLAY`. Overlays are combined by their differences from
the default; a test compares every combination with kustomize.
"""

from collections.abc import Iterable
from enum import StrEnum
from importlib import resources

import yaml

from mpijob_elastic.install import merge_patch
from mpijob_elastic.install.objects import Identity, Manifest, by_identity

DEFAULT = "default"


class Overlay(StrEnum):
    """An overlay that can be added to the default."""

    CERT_MANAGER = "cert-manager"
    SINGLE_NAMESPACE = "single-namespace"
    PROMETHEUS = "prometheus"


def combined(overlays: Iterable[Overlay]) -> list[Manifest]:
    """Return the manifests of the default with these overlays."""
    default = by_identity(rendered(DEFAULT))
    result = dict(default)
    for overlay in overlays:
        _add(result, default, by_identity(rendered(overlay)))
    return list(result.values())


def rendered(name: str) -> list[Manifest]:
    """Return the manifests in `manifests/NAME.yaml`."""
    text = resources.files("mpijob_elastic.install").joinpath("manifests", f"{name}.yaml").read_text()
    # libyaml's loader is ten times as fast; some builds of PyYAML lack it.
    return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _add(
    result: dict[Identity, Manifest], default: dict[Identity, Manifest], overlay: dict[Identity, Manifest]
) -> None:
    for key in default.keys() - overlay.keys():
        result.pop(key, None)
    for key, manifest in overlay.items():
        if key not in default:
            result[key] = manifest
        elif key in result and manifest != default[key]:  # another overlay may have removed it
            result[key] = merge_patch.patched(result[key], merge_patch.difference(default[key], manifest))

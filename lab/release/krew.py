"""The manifest of the kubectl plugin for krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/)."""

from pathlib import Path
from typing import Any

import yaml

from lab.images.product.image import NAME
from lab.release.archives import sha256
from lab.release.plugin import COMMAND, PLATFORMS, PYTHONS

MANIFEST = f"{NAME}.yaml"  # krew wants a manifest to be called like its plugin
_DESCRIPTION = (
    "Shows the MPIJobs that mpijob-elastic resizes, says why a worker does not train, and installs, upgrades and "
    "removes mpijob-elastic on clusters that keep mpi-operator v0.2.3."
)
_CAVEATS = f"It needs python3 on the PATH: Python {PYTHONS[0]} to {PYTHONS[-1]}, on Linux with glibc 2.28 or newer."


def manifest(folder: Path, *, version: str, url: str) -> str:
    """Return the manifest for the plugin's archives in a folder, which will be found below `url`."""
    platforms: list[dict[str, Any]] = [
        {
            "selector": {"matchLabels": {"os": one.os, "arch": one.arch}},
            "uri": f"{url}/{one.archive(version)}",
            "sha256": sha256(folder / one.archive(version)),
            "bin": COMMAND,
        }
        for one in PLATFORMS
    ]
    document = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Explain elastic MPIJobs, and install them",
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": platforms,
        },
    }
    return yaml.safe_dump(document, sort_keys=False, width=120)

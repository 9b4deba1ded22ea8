"""Network of a node's pods: the CNI configuration, and the folder of the plugins."""

import json
import os
from pathlib import Path

from lab.node.addresses import BRIDGE, LAB, Place

PLUGINS = ("bridge", "host-local", "loopback")
# Of the upstream release archives, Debian and Ubuntu, Fedora.
_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
CONFIGURATIONS = LAB / "cni"


def plugin_directory() -> Path | None:
    """Return the directory that has all plugins, the first of $CNI_PATH and the usual ones."""
    candidates = (*filter(None, os.environ.get("CNI_PATH", "").split(os.pathsep)), *_DIRECTORIES)
    return next((one for one in map(Path, candidates) if _has_all(one)), None)


def _has_all(directory: Path) -> bool:
    return all(os.access(directory / plugin, os.X_OK) for plugin in PLUGINS)


def configuration(place: Place) -> str:
    """Return the network list for containerd: one bridge, no address translation, a way to all else by the node."""
    ranges = [[{"subnet": place.pod_network}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "lab", "plugins": [bridge]}, indent=2)

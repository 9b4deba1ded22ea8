"""containerd on the node: its configuration, the network of pods, images, and how it is run and asked."""

import json
import os
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.images.archive import File, write_layer
from lab.images.oci import Settings, write_image
from lab.node import namespaces
from lab.node.addresses import BRIDGE, CONTAINERD, CONTAINERD_SOCKET, LAB, Place

CONFIGURATION = LAB / "containerd.toml"
# The image of sandboxes. Images come from archives of this machine, never from a registry.
PAUSE = "mpijob-elastic.local/pause:1"
NETWORK_PLUGINS = ("bridge", "host-local", "loopback")
# Of the upstream release archives, Debian and Ubuntu, Fedora.
_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
NETWORK_CONFIGURATIONS = LAB / "cni"
_CRI = 'plugins."io.containerd.grpc.v1.cri"'
# Plugins that look for what this machine need not have, or write outside the node's directories.
_DISABLED = [
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
]


def configuration(plugins: Path) -> str:
    """Return containerd.toml, version 2, which containerd 1.5 to 2.x read.

    `restrict_oom_score_adj` lets it run where CAP_SYS_RESOURCE is missing, as in most containers.
    """
    return f"""version = 2
root = "{CONTAINERD}"
state = "{CONTAINERD_SOCKET.parent}"
disabled_plugins = {json.dumps(_DISABLED)}

[grpc]
address = "{CONTAINERD_SOCKET}"

[{_CRI}]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
disable_apparmor = true
tolerate_missing_hugetlb_controller = true
disable_hugetlb_controller = true

[{_CRI}.cni]
bin_dir = "{plugins}"
conf_dir = "{NETWORK_CONFIGURATIONS}"

[{_CRI}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{_CRI}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def plugin_directory() -> Path | None:
    """Return the directory that has all plugins, the first of $CNI_PATH and the usual ones."""
    candidates = (*filter(None, os.environ.get("CNI_PATH", "").split(os.pathsep)), *_DIRECTORIES)
    return next((one for one in map(Path, candidates) if _has_all(one)), None)


def _has_all(directory: Path) -> bool:
    return all(os.access(directory / plugin, os.X_OK) for plugin in NETWORK_PLUGINS)


def network(place: Place) -> str:
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


def command() -> list[str]:
    """Return how it is run on the node."""
    return ["containerd", f"--config={CONFIGURATION}"]


def ask(*arguments: str) -> list[str]:
    """Return a command of its client, for the images and containers that the kubelet sees."""
    return ["ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", *arguments]


def load(node: int, archive: Path) -> None:
    """Make the images of an archive known on a node, whose namespaces the process `node` holds.

    Raise LabError.
    """
    with archive.open("rb") as file:
        command = namespaces.inside(node, ask("images", "import", "-"))
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{archive} cannot be loaded into a real node: {done.stderr.strip()}")


def write_pause(program: Path, archive: Path) -> None:
    """Write the image of pods' sandboxes."""
    layer = archive.with_name("pause-layer.tar")
    write_layer(layer, {"pause": File(content=program, mode=0o755)})
    write_image(archive, reference=PAUSE, layers=[layer], settings=Settings(command=("/pause",)))

"""containerd on the node: its configuration, and how it is run and asked."""

import json
from pathlib import Path

from lab.node.addresses import CONTAINERD, CONTAINERD_SOCKET, LAB
from lab.node.network import CONFIGURATIONS

CONFIGURATION = LAB / "containerd.toml"
_CRI = 'plugins."io.containerd.grpc.v1.cri"'
# Plugins that look for what this machine need not have, or write outside the node's directories.
_DISABLED = [
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
]


def configuration(*, pause_image: str, plugins: Path) -> str:
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
sandbox_image = "{pause_image}"
restrict_oom_score_adj = true
disable_apparmor = true
tolerate_missing_hugetlb_controller = true
disable_hugetlb_controller = true

[{_CRI}.cni]
bin_dir = "{plugins}"
conf_dir = "{CONFIGURATIONS}"

[{_CRI}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{_CRI}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def command() -> list[str]:
    """Return how it is run on the node."""
    return ["containerd", f"--config={CONFIGURATION}"]


def ask(*arguments: str) -> list[str]:
    """Return a command of its client, for the images and containers that the kubelet sees."""
    return ["ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", *arguments]

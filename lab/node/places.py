"""Names, addresses and paths of the real node. They are the same in every lab: each has namespaces of its own."""

from pathlib import Path

from lab.layout import Layout

NODE = "real-0"
USER = f"system:node:{NODE}"  # whom the Node authorizer takes for this node's kubelet
GROUP = "system:nodes"

SERVICE_ADDRESS = "10.96.0.1"  # of the `kubernetes` Service: the first of components.SERVICE_CIDR
SERVICE_PORT = 443
# kwok's pods have 10.244.0.0/16.
POD_NETWORK = "10.245.0.0/16"
NODE_ADDRESS = "10.245.0.1"
PREFIX_LENGTH = 16
BRIDGE = "cni0"
KUBELET_PORT = 10250

# Paths as the node's processes see them.
LIB = Path("/var/lib")
LOG = Path("/var/log")
RUN = Path("/run")
LAB = LIB / "lab"
CONTAINERD_SOCKET = RUN / "containerd" / "containerd.sock"


def lib(layout: Layout) -> Path:
    """Directory that is /var/lib on the node."""
    return layout.node / "lib"


def log(layout: Layout) -> Path:
    """Directory that is /var/log on the node."""
    return layout.node / "log"


def lab(layout: Layout) -> Path:
    """Directory that is LAB on the node: all that is configured."""
    return lib(layout) / "lab"


def prepared(layout: Layout) -> Path:
    """File that is there once the namespaces are set up."""
    return lab(layout) / "prepared"


def egress_socket(layout: Layout) -> Path:
    """Unix socket at which the gateway lets the API server into the node's network."""
    return layout.root / "egress"

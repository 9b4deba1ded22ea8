"""Names, addresses and paths of the real nodes.

They are the same in every lab: each has namespaces of its own.
"""

from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.layout import Layout

GROUP = "system:nodes"
LONGEST_SOCKET = 107  # bytes of a path in sockaddr_un, unix(7)

SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # of the `kubernetes` Service: the first of SERVICE_NETWORK
SERVICE_PORT = 443
# Of all pods of real nodes; kwok's have 10.244.0.0/16.
POD_NETWORKS = "10.245.0.0/16"
PREFIX_LENGTH = 24  # of one node's
BRIDGE = "cni0"
UPLINK = "uplink"
KUBELET_PORT = 10250

# Paths as a node's processes see them.
LIB = Path("/var/lib")
LOG = Path("/var/log")
RUN = Path("/run")
LAB = LIB / "lab"
CONTAINERD = LIB / "containerd"
CONTAINERD_SOCKET = RUN / "containerd" / "containerd.sock"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A real node's addresses and names, from its number (from 0)."""

    index: int

    @property
    def name(self) -> str:
        """Name of the Node, of the process that holds its namespaces, and of the switch's end of its cable."""
        return f"real-{self.index}"

    @property
    def user(self) -> str:
        """User name of this node's kubelet, for the Node authorizer."""
        return f"system:node:{self.name}"

    @property
    def pod_network(self) -> str:
        """Addresses of its pods."""
        return f"10.245.{self.index}.0/{PREFIX_LENGTH}"

    @property
    def address(self) -> str:
        """Its own address, which is its bridge's."""
        return f"10.245.{self.index}.1"

    @property
    def containerd(self) -> str:
        """Name of its containerd among the lab's components."""
        return f"{self.name}-containerd"

    @property
    def kubelet(self) -> str:
        """Name of its kubelet among the lab's components."""
        return f"{self.name}-kubelet"

    @property
    def components(self) -> tuple[str, ...]:
        """Names of its processes among the lab's components."""
        return (self.name, self.containerd, self.kubelet)

    def lib(self, layout: Layout) -> Path:
        """Directory that is LIB on the node."""
        return layout.node / self.name / "lib"

    def log(self, layout: Layout) -> Path:
        """Directory that is LOG on the node."""
        return layout.node / self.name / "log"

    def there(self, layout: Layout, path: Path) -> Path:
        """Return the machine's path for a path below the node's LIB."""
        return self.lib(layout) / path.relative_to(LIB)

    def prepared(self, layout: Layout) -> Path:
        """File that is there once its namespaces are set up."""
        return self.there(layout, LAB / "prepared")


def places(count: int) -> tuple[Place, ...]:
    """Return the addresses of `count` real nodes."""
    return tuple(Place(index=index) for index in range(count))


def pause_archive(layout: Layout) -> Path:
    """Docker archive with the image of pods' sandboxes."""
    return layout.node / "pause.tar"


def egress_socket(layout: Layout) -> Path:
    """Unix socket at which the gateway lets the API server into the nodes' network; raise LabError."""
    return _socket(layout, "egress")


def control_socket(layout: Layout) -> Path:
    """Unix socket at which the supervisor is asked to end and start nodes; raise LabError."""
    return _socket(layout, "control")


def _socket(layout: Layout, name: str) -> Path:
    socket = layout.root / name
    if len(str(socket).encode()) > LONGEST_SOCKET:
        raise LabError(
            f"{socket} is too long for the path of a socket ({LONGEST_SOCKET} bytes): "
            "set XDG_STATE_HOME to a shorter one, or give the lab a shorter name."
        )
    return socket

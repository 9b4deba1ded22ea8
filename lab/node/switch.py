"""The network between the real nodes: a namespace of its own, the gateway's, into which each node has a cable.

A cable is a pair of interfaces. Pulled while the node's processes still run, it leaves the node's
peers as they are when a machine loses its power: nobody tells them that their connections have
ended, and packets get lost silently.
"""

from pathlib import Path

from lab.node.addresses import POD_NETWORKS, SERVICE_ADDRESS, SERVICE_NETWORK, UPLINK, Place
from lab.node.namespaces import in_network
from lab.processes import run

COMPONENT = "gateway"  # whose network namespace it is
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")  # of whatever network namespace one is in
# Where packets go that are for no node or Service there is: a bridge that nothing hangs on, to a
# neighbour that is not there. A route of type blackhole would refuse the gateway's own connections
# at once instead.
_VOID = "void"
_NOBODY = "10.96.0.2"
_NOBODYS_LINK = "02:00:00:00:00:02"


def set_up() -> None:
    """Make of the network namespace that we are in the switch. Raise LabError."""
    _run(
        "ip link set lo up",
        f"ip address add {SERVICE_ADDRESS}/32 dev lo",
        f"ip link add {_VOID} type bridge",
        f"ip link set {_VOID} up",
        f"ip neighbour add {_NOBODY} lladdr {_NOBODYS_LINK} dev {_VOID} nud permanent",
        f"ip route add {POD_NETWORKS} via {_NOBODY} dev {_VOID} onlink",
        f"ip route add {SERVICE_NETWORK} via {_NOBODY} dev {_VOID} onlink",
    )
    FORWARDING.write_text("1\n")


def plug(place: Place, *, switch: int, node: int) -> None:
    """Connect a node; the numbers are pids of processes in the two network namespaces.

    Raise LabError.
    """
    _run(
        f"ip link add {place.name} type veth peer name {UPLINK} netns {node}",
        f"ip link set {place.name} up",
        f"ip route add {place.pod_network} via {place.address} dev {place.name} onlink",
        network=switch,
    )
    _run(
        f"ip link set {UPLINK} up",
        f"ip route add default via {SERVICE_ADDRESS} dev {UPLINK} onlink src {place.address}",
        network=node,
    )


def pull(place: Place, *, switch: int) -> None:
    """Cut a node off. Raise LabError."""
    _run(f"ip link delete {place.name}", network=switch)


def _run(*commands: str, network: int | None = None) -> None:
    for command in commands:
        run(*(command.split() if network is None else in_network(network, command.split())))

"""kube-proxy: what pods and the API server send to a Service's address goes to a pod behind the Service.

A cluster runs it on each node, those of the control plane included. Here one runs in the switch,
which everything for that network passes: pods' packets to Services by their node's default route,
the API server's by the gateway.
"""

from pathlib import Path
from typing import Any

from lab.layout import Layout
from lab.node.addresses import SERVICE_ADDRESS, SERVICE_PORT, Place

COMPONENT = "kube-proxy"
USER = "system:kube-proxy"  # whom every API server gives the rights of system:node-proxier
# Where the gateway takes what is for the API server.
API_SERVER = f"https://{SERVICE_ADDRESS}:{SERVICE_PORT}"
ENDPOINT_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def kubeconfig(layout: Layout) -> Path:
    """Path of its kubeconfig."""
    return layout.kubeconfigs / COMPONENT


def command(program: Path, layout: Layout, place: Place) -> list[str]:
    """Return how it is run in the switch, for a node whose Node must be there: it takes that node's place."""
    return [
        str(program),
        f"--kubeconfig={kubeconfig(layout)}",
        f"--hostname-override={place.name}",
        "--proxy-mode=iptables",
        # Else an answer to a pod of the same node would not come back through the switch.
        "--masquerade-all",
        "--iptables-localhost-nodeports=false",
        # The limit is the whole machine's.
        "--conntrack-max-per-core=0",
    ]


def gateway_endpoint() -> dict[str, Any]:
    """Return the EndpointSlice of the Service `kubernetes`, which kube-proxy would refuse connections to without one.

    The gateway listens at the Service's own address: the API server's is on loopback, which no
    endpoint may be.
    """
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [SERVICE_ADDRESS]}],
        "ports": [{"name": "https", "port": SERVICE_PORT, "protocol": "TCP"}],
    }

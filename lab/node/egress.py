"""What the API server is told, so that it reaches the node's network: through the gateway's unix socket."""

from pathlib import Path

import yaml

from lab.errors import LabError
from lab.layout import Layout
from lab.node import places

LONGEST = 107  # bytes of a path in sockaddr_un, unix(7)


def write_selection(layout: Layout) -> Path:
    """Write an EgressSelectorConfiguration and return its path; raise LabError if a socket cannot be there.

    "cluster" is what goes to nodes, pods and Services; webhooks that are given by URL are not among it
    (https://kubernetes.io/docs/reference/config-api/apiserver-config.v1beta1/#apiserver-k8s-io-v1beta1-EgressSelection).
    """
    socket = places.egress_socket(layout)
    if len(str(socket).encode()) > LONGEST:
        raise LabError(
            f"{socket} is too long for the path of a socket ({LONGEST} bytes): "
            "set XDG_STATE_HOME to a shorter one, or give the lab a shorter name."
        )
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(socket)}}}
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    path = layout.root / "egress.yaml"
    path.write_text(yaml.safe_dump(content))
    return path

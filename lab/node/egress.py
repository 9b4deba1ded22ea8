"""Egress settings of the API server: it reaches the nodes' network through the gateway's unix socket."""

from pathlib import Path

import yaml

from lab.layout import Layout
from lab.node import addresses


def write_selection(layout: Layout) -> Path:
    """Write an EgressSelectorConfiguration and return its path; raise LabError if a socket cannot be there.

    "cluster" is what goes to nodes, pods and Services; webhooks that are given by URL are not among it
    (https://kubernetes.io/docs/reference/config-api/apiserver-config.v1beta1/#apiserver-k8s-io-v1beta1-EgressSelection).
    """
    transport = {"uds": {"udsName": str(addresses.egress_socket(layout))}}
    connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    path = layout.root / "egress.yaml"
    path.write_text(yaml.safe_dump(content))
    return path

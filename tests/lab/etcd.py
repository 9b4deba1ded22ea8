"""The store of a lab, written to past the API server: how an object is made that no API server of today accepts.

etcd serves its gRPC API as JSON too: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/
"""

import base64
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.layout import Layout
from lab.state import read_state

_CLIENT_URLS = "--listen-client-urls="


def put(cluster: Cluster, key: str, value: dict[str, Any]) -> None:
    """Store an object under its key, as `/registry/GROUP/RESOURCE/NAME`."""
    body = {"key": _base64(key), "value": _base64(json.dumps(value))}
    request = urllib.request.Request(  # noqa: S310 - our own, https
        f"{_url(cluster)}/v3/kv/put",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=_tls(cluster), timeout=60) as answer:  # noqa: S310
        assert answer.status == 200


def _url(cluster: Cluster) -> str:
    state = read_state(Layout(cluster.state_dir))
    assert state is not None
    command = Path(f"/proc/{state.components['etcd'].pid}/cmdline").read_text().split("\0")
    return next(
        part.removeprefix(_CLIENT_URLS) for part in command if part.startswith(_CLIENT_URLS)
    )


def _tls(cluster: Cluster) -> ssl.SSLContext:
    pki = Layout(cluster.state_dir).pki
    context = ssl.create_default_context(cafile=pki / "ca.crt")
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    return context


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

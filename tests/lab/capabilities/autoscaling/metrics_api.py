"""A test double of a metrics adapter, with the values that a test sets.

It is reached as a real one is, through the API server's aggregation layer. Like a real one it takes
requests from there only (by its client certificate), but it asks nobody what the user behind a
request may do.

The real ones are in tests/peers/capabilities/autoscaling/test_hpa_prometheus.py and
tests/real/test_hpa_cpu.py. They take minutes to build, and root; without this one `make test` would
have no HPA.
"""

import datetime as dt
import json
import re
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.cluster import Cluster
from lab.layout import Layout
from lab.pki import Authority
from tests.lab.aggregation import HOST, aggregated

Object = dict[str, Any]
GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
_PATH = re.compile(rf"/apis/{GROUP}/{VERSION}(/namespaces/(?P<namespace>[^/]+)/(?P<name>[^/]+))?")


@dataclass(kw_only=True)
class Values:
    """external: the value of each metric; reads: how often each was asked for, by namespace and name."""

    external: dict[str, int] = field(default_factory=dict)
    reads: Counter[tuple[str, str]] = field(default_factory=Counter)


@contextmanager
def serving(cluster: Cluster, directory: Path) -> Iterator[Values]:
    """Serve it as long as the block lasts; `directory` takes the certificate."""
    values = Values()
    authority = Authority(directory, "metrics-ca", now=dt.datetime.now(dt.UTC))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, values))
    server.socket = _context(cluster, directory, authority).wrap_socket(
        server.socket,
        server_side=True,
        do_handshake_on_connect=False,  # but in the connection's own thread
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    ca = authority.certificate.read_bytes()
    try:
        with aggregated(cluster, [f"{VERSION}.{GROUP}"], port=server.server_port, authority=ca):
            yield values
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _context(cluster: Cluster, directory: Path, authority: Authority) -> ssl.SSLContext:
    pair = authority.issue("metrics", user="metrics", hosts=(HOST,))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(Layout(cluster.state_dir).pki / "front-proxy-ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class _Handler(BaseHTTPRequestHandler):
    """Answers the list that a HPA asks for, and discovery."""

    protocol_version = "HTTP/1.1"

    def __init__(self, values: Values, *rest: Any) -> None:
        self._values = values
        super().__init__(*rest)

    def do_GET(self) -> None:
        asked = _PATH.fullmatch(urlsplit(self.path).path)
        answer = self._answer(asked) if asked else None
        body = json.dumps(
            answer or {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404}
        ).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, asked: re.Match[str]) -> Object | None:
        namespace, name = asked["namespace"], asked["name"]
        if name is None:
            found = {"groupVersion": f"{GROUP}/{VERSION}", "resources": []}
            return {"apiVersion": "v1", "kind": "APIResourceList", **found}
        if name not in self._values.external:
            return None
        self._values.reads[namespace, name] += 1
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        value: Object = {"metricName": name, "metricLabels": {}, "timestamp": now}
        value["value"] = str(self._values.external[name])
        kind = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ExternalMetricValueList"}
        return {**kind, "metadata": {}, "items": [value]}

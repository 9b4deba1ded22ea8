"""A test double of a metrics adapter: external.metrics.k8s.io and metrics.k8s.io, with the values that a test sets.

It is reached as a real one is, through the API server's aggregation layer. Like a real one it takes requests from there
only (by its client certificate), but it asks nobody what the user behind a request may do.
tests/peers/test_hpa_prometheus.py has a real adapter, which takes minutes to build.
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
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"
VERSION = "v1beta1"
_PATH = re.compile(rf"/apis/(?P<group>[a-z0-9.]+)/{VERSION}(/namespaces/(?P<namespace>[^/]+)/(?P<name>[^/]+))?")


@dataclass(kw_only=True)
class Values:
    """external: the value of each metric. cpu: thousandths of a core that each container uses, by its pod's role.

    reads: how often each metric was asked for, by namespace and name.
    """

    external: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    reads: Counter[tuple[str, str]] = field(default_factory=Counter)


@contextmanager
def serving(cluster: Cluster, directory: Path) -> Iterator[Values]:
    """Serve both APIs as long as the block lasts; `directory` takes the certificate."""
    values = Values()
    authority = Authority(directory, "metrics-ca", now=dt.datetime.now(dt.UTC))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, cluster, values))
    server.socket = _context(cluster, directory, authority).wrap_socket(
        server.socket,
        server_side=True,
        do_handshake_on_connect=False,  # but in the connection's own thread
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    groups = [f"{VERSION}.{group}" for group in (EXTERNAL, RESOURCE)]
    ca = authority.certificate.read_bytes()
    try:
        with aggregated(cluster, groups, port=server.server_port, authority=ca):
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
    """Answers the two lists that a HPA asks for, and discovery."""

    protocol_version = "HTTP/1.1"

    def __init__(self, cluster: Cluster, values: Values, *rest: Any) -> None:
        self._cluster = cluster
        self._values = values
        super().__init__(*rest)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = _PATH.fullmatch(url.path)
        answer = self._answer(asked, url.query) if asked else None
        body = json.dumps(answer or {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, asked: re.Match[str], query: str) -> Object | None:
        group, namespace, name = asked["group"], asked["namespace"], asked["name"]
        if name is None:
            found = {"groupVersion": f"{group}/{VERSION}", "resources": []}
            return {"apiVersion": "v1", "kind": "APIResourceList", **found}
        if group == RESOURCE:
            return _list("PodMetricsList", RESOURCE, [self._usage(pod) for pod in self._pods(namespace, query)])
        if name not in self._values.external:
            return None
        self._values.reads[namespace, name] += 1
        value: Object = {"metricName": name, "metricLabels": {}, "timestamp": _now()}
        return _list("ExternalMetricValueList", EXTERNAL, [{**value, "value": str(self._values.external[name])}])

    def _pods(self, namespace: str, query: str) -> list[Object]:
        """The pods behind the request's selector: it is the API server that selects."""
        raw = self._cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/pods?{query}")
        pods: list[Object] = json.loads(raw)["items"]
        return pods

    def _usage(self, pod: Object) -> Object:
        cpu = self._values.cpu.get(pod["metadata"]["labels"].get("mpi-job-role"), 0)
        containers = [{"name": one["name"], "usage": {"cpu": f"{cpu}m"}} for one in pod["spec"]["containers"]]
        metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        return {"metadata": metadata, "timestamp": _now(), "window": "1s", "containers": containers}


def _list(kind: str, group: str, items: list[Object]) -> Object:
    return {"apiVersion": f"{group}/{VERSION}", "kind": kind, "metadata": {}, "items": items}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

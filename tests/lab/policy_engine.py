"""A policy engine of somebody else: a real mutating webhook, called for each object of a job, new or updated."""

import base64
import datetime as dt
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.pki import Authority
from mpijob_elastic import names

Object = dict[str, Any]
NAME = "policy-engine"
# It gives each object that somebody updates an annotation and a label of this name.
MARK = "policy.example.com/checked"
_RULES = (("", "v1", ["pods", "configmaps"]), ("rbac.authorization.k8s.io", "v1", ["roles"]))
_CRD_RULES = (("kubeflow.org", "v1", ["mpijobs"]),)


@dataclass
class Engine:
    """denies: why our writes to objects of these kinds, and to launchers, are refused; "" while they are not.

    hangs: it answers none of these writes, until `ended` is set.
    """

    denies: str = ""
    kinds: tuple[str, ...] = ("Pod",)
    hangs: bool = False
    #: How often it was asked.
    asked: int = 0
    #: Ends the wait of the requests that are not answered.
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def policy_engine(
    cluster: Cluster,
    directory: Path,
    *,
    namespace: str,
    failure_policy: str = "Fail",
    times: int = 1,
) -> Iterator[Engine]:
    """Have the API server ask the engine as long as the block lasts; `directory` takes the certificate.

    times: it is asked so often about each object, by as many webhooks.
    """
    engine = Engine()
    authority = Authority(directory, "policy-ca", now=dt.datetime.now(dt.UTC))
    pair = authority.issue("policy", user=NAME, hosts=(cluster.machine,))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer((cluster.machine, 0), partial(_Handler, engine))
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"https://{cluster.machine}:{server.server_port}/"
    hook = _hook(url, authority.certificate.read_bytes(), namespace, failure_policy)
    text = json.dumps(
        _configuration([hook | {"name": f"{n}.{hook['name']}"} for n in range(times)])
    )
    try:
        cluster.kubectl("apply", "-f", "-", stdin=text)
        yield engine
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
        engine.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _hook(url: str, ca: bytes, namespace: str, failure_policy: str) -> Object:
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": resources,
            "operations": ["CREATE", "UPDATE"],
        }
        for group, version, resources in (*_RULES, *_CRD_RULES)
    ]
    return {
        "name": f"{NAME}.example.com",
        "failurePolicy": failure_policy,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }


def _configuration(hooks: list[Object]) -> Object:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": NAME}, "webhooks": hooks}


def _patch(found: Object) -> list[Object]:
    """Mark the object, unless it is marked."""
    changes: list[Object] = []
    for part in ("annotations", "labels"):
        values = found["metadata"].get(part, {})
        if MARK not in values:
            changes.append(
                {"op": "add", "path": f"/metadata/{part}", "value": {**values, MARK: "yes"}}
            )
    return changes


class _Handler(BaseHTTPRequestHandler):
    """Answers admission reviews."""

    protocol_version = "HTTP/1.1"

    def __init__(self, engine: Engine, *rest: Any) -> None:
        self._engine = engine
        super().__init__(*rest)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        self._engine.asked += 1
        response: Object = {"uid": request["uid"], "allowed": True}
        is_ours = (
            names.CONTROLLER in request["userInfo"]["username"]
            and "-worker-" not in request["name"]
        )
        is_chosen = is_ours and request["kind"]["kind"] in self._engine.kinds
        if self._engine.hangs and is_chosen:
            self._engine.ended.wait()
        if self._engine.denies and is_chosen:
            response |= {"allowed": False, "status": {"code": 403, "message": self._engine.denies}}
        elif request["operation"] == "UPDATE" and (changes := _patch(request["object"])):
            patch = base64.b64encode(json.dumps(changes).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": patch}
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

"""Writes kubeconfig files that stand alone: certificates and tokens are inside, so a file may be moved."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.pki import KeyPair, write_private


@dataclass(frozen=True, kw_only=True)
class Server:
    """The API server: its `url` and the PEM bytes of the `ca` that signed its certificate."""

    url: str
    ca: bytes


def write_certificate_kubeconfig(path: Path, server: Server, *, user: str, pair: KeyPair) -> None:
    """Write a kubeconfig that authenticates by client certificate."""
    certificate, key = (_base64(one.read_bytes()) for one in (pair.certificate, pair.key))
    _write(
        path,
        server,
        user=user,
        credentials={"client-certificate-data": certificate, "client-key-data": key},
    )


def write_token_kubeconfig(
    path: Path, server: Server, *, user: str, token: str, namespace: str
) -> None:
    """Write a kubeconfig that authenticates by bearer token and works in `namespace`."""
    _write(path, server, user=user, credentials={"token": token}, namespace=namespace)


def read_server(path: Path) -> Server:
    """Read the API server's address and CA back from a kubeconfig written here."""
    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    return Server(url=cluster["server"], ca=base64.b64decode(cluster["certificate-authority-data"]))


def _write(
    path: Path,
    server: Server,
    *,
    user: str,
    credentials: dict[str, str],
    namespace: str = "default",
) -> None:
    cluster = {"server": server.url, "certificate-authority-data": _base64(server.ca)}
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [
            {"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": namespace}}
        ],
        "current-context": "lab",
    }
    write_private(path, yaml.safe_dump(content, sort_keys=False).encode())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()

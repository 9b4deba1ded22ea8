"""A few requests to the API server while a lab starts: readiness, manifests, tokens.

Plain http.client over one connection: importing a full client would take longer than these requests
do.
"""

import http.client
import json
import ssl
from typing import Any, Self
from urllib.parse import urlsplit

from lab.errors import LabError
from lab.kubeconfig import Server
from lab.pki import KeyPair

TIMEOUT = 10.0  # seconds, for one request


class ApiError(LabError):
    """A request was refused, or not answered."""


class Api:
    """The API server as seen by the owner of a client certificate; a context manager that closes its connection."""

    def __init__(self, server: Server, pair: KeyPair) -> None:
        context = ssl.create_default_context(cadata=server.ca.decode())
        context.load_cert_chain(pair.certificate, pair.key)
        address = urlsplit(server.url)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=context, timeout=TIMEOUT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ready(self) -> bool:
        """Tell whether /readyz says yes; an API server that does not answer yet is not ready."""
        try:
            self._send("GET", "/readyz", None)
        except ApiError:
            return False
        return True

    def get(self, path: str) -> dict[str, Any]:
        """Return the object or list at `path`; raise ApiError."""
        return self._json("GET", path, None)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create `body` in the collection at `path` and return what became of it; raise ApiError."""
        return self._json("POST", path, body)

    def _json(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._send(method, path, body))
        return answer

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> bytes:
        content = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, content, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ApiError(f"{method} {path} was not answered: {error!r}") from error
        if response.status >= http.client.BAD_REQUEST:
            raise ApiError(
                f"{method} {path} was refused: {response.status} {answer.decode(errors='replace')}"
            )
        return answer

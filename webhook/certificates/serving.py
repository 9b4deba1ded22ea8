"""The certificate that is served, exchanged without a restart.

The context the server listens with holds no certificate: at each handshake it hands over to the current one, which is
never changed once made. So a pair that does not load leaves the old one untouched, a change of key type leaves nothing
of the old key behind, and connections that are open go on.
"""

from __future__ import annotations

import os
import ssl
from datetime import datetime

from cryptography import x509

from webhook.rules.certificates import pairs


class Unusable(ValueError):
    """A certificate and key that TLS does not accept; the text says why."""


class Serving:
    """`context` is what to listen with; `certificate` what is served, None before the first `load`."""

    def __init__(self) -> None:
        self.certificate: x509.Certificate | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        self.context.sni_callback = self._hand_over

    def load(self, certificates: bytes, key: bytes) -> None:
        """Serve these from the next handshake on (PEM; the leaf comes first). Raises `Unusable`; the old one stays."""
        context = _context()
        try:
            _load(context, certificates + b"\n" + key)
            self.certificate = x509.load_pem_x509_certificate(certificates)
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"the certificate and key cannot be served: {error}") from error
        self._current = context

    def valid(self, *, now: datetime) -> bool:
        """Whether a certificate is served that is valid now."""
        return self.certificate is not None and not pairs.fault(self.certificate, now=now)

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    # The ssl module reads files only. This one is memory: the key reaches no disk, and the root may be read-only.
    descriptor = os.memfd_create("certificate")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        # A wrong password instead of the prompt on the terminal that an encrypted key would cause.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
    finally:
        os.close(descriptor)

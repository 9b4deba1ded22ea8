"""The served certificate, replaced without a restart, and the files in which cert-manager puts it.

The server listens with a context without a certificate. At each handshake that context hands over
to the current context, which never changes. So a pair that does not load leaves the old pair in
place, and open connections go on.
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509

from mpijob_elastic.kube.tls_pair import load_pair
from webhook.certificates import pairs

_log = logging.getLogger(__name__)


class Unusable(ValueError):
    """A certificate and key that TLS does not accept; the text says why."""


class Serving:
    """The served certificate.

    `context` is for the listener; `certificate` is None before the first `load`.
    """

    def __init__(self) -> None:
        self.certificate: x509.Certificate | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        self.context.sni_callback = self._hand_over

    def load(self, certificates: bytes, key: bytes) -> None:
        """Serve this pair from the next handshake on (PEM, leaf first).

        Raises `Unusable`; then the old pair stays.
        """
        context = _context()
        try:
            load_pair(context, certificates + b"\n" + key)
            self.certificate = x509.load_pem_x509_certificate(certificates)
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"the certificate and key cannot be served: {error}") from error
        self._current = context
        _log.info("serving a new certificate until %s", self.certificate.not_valid_after_utc)

    def valid(self, *, now: datetime) -> bool:
        """Return True if the served certificate is valid now."""
        return self.certificate is not None and not pairs.fault(self.certificate, now=now)

    def expires_at(self) -> float:
        """Return the expiry of the served certificate, in seconds since the epoch.

        It is 0 before there is one.
        """
        return self.certificate.not_valid_after_utc.timestamp() if self.certificate else 0.0

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


@dataclass(kw_only=True)
class Files:
    """Keeps `serving` at the pair in the directory's tls.crt and tls.key.

    cert-manager renews them. The kubelet replaces a mounted Secret as a whole, but its files are
    read one by one, so a mixed pair may be read. A mixed pair is refused, and the next look finds
    the right pair. cert-manager's injector maintains the caBundle.
    """

    directory: Path
    serving: Serving
    look_every: float
    #: Always empty, because nobody tells the API server a secret path.
    secret_path: str = field(default="", init=False)
    _last: tuple[bytes, bytes] | None = field(default=None, init=False)

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(self.look_every)

    def look(self) -> None:
        """Load the files if they have changed; an unusable pair is logged and skipped."""
        try:
            found = (
                (self.directory / "tls.crt").read_bytes(),
                (self.directory / "tls.key").read_bytes(),
            )
            if found != self._last:
                self._last = found
                self.serving.load(*found)
        except (OSError, Unusable) as error:
            _log.warning("certificate files in %s not used: %s", self.directory, error)

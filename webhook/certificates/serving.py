"""Certificates that are read before they are served, from a Secret or from cert-manager's files."""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509

from webhook.certificates.handshakes import Handshakes, Unusable
from webhook.certificates.messages import ServedPair

_log = logging.getLogger(__name__)


class Serving(Handshakes):
    """The served certificate, which is read; `certificate` is None before the first `load`."""

    def __init__(self) -> None:
        super().__init__()
        self.certificate: x509.Certificate | None = None

    def load(self, certificates: bytes, key: bytes) -> ServedPair:
        """Serve this pair from the next handshake on (PEM, leaf first), and return it.

        Raises `Unusable`; then the old pair stays.
        """
        try:
            certificate = x509.load_pem_x509_certificate(certificates)
        except ValueError as error:
            raise Unusable(f"the certificate and key cannot be served: {error}") from error
        pair = ServedPair(
            certificates=certificates,
            key=key,
            not_before=certificate.not_valid_before_utc.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
        )
        self.put(pair)
        self.certificate = certificate
        return pair


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
                pair = self.serving.load(*found)
                _log.info("serving a new certificate until %s", pair.until)
        except (OSError, Unusable) as error:
            _log.warning("certificate files in %s not used: %s", self.directory, error)

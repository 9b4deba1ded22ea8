"""Certificates that cert-manager renews: files of a mounted Secret, loaded again when they change.

The kubelet replaces a mounted Secret as a whole, but its files are read one by one, so a mixed pair may be read. It is
refused, and the next look finds the right pair. cert-manager's injector maintains the caBundle.
"""

import asyncio
from pathlib import Path

import structlog

from webhook.certificates.serving import Serving, Unusable
from webhook.metrics import Metrics

CERTIFICATE = "tls.crt"
KEY = "tls.key"


class Files:
    """Keeps `serving` at the pair in the directory's tls.crt and tls.key."""

    def __init__(self, directory: Path, *, serving: Serving, look_every: float, metrics: Metrics) -> None:
        self._directory = directory
        self._serving = serving
        self._look_every = look_every
        self._metrics = metrics
        self._last: tuple[bytes, bytes] | None = None
        self._log = structlog.get_logger("webhook.certificates").bind(directory=str(directory))

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(self._look_every)

    def look(self) -> None:
        """Load the files if they have changed; an unusable pair is logged and skipped."""
        try:
            found = (self._directory / CERTIFICATE).read_bytes(), (self._directory / KEY).read_bytes()
            if found != self._last:
                self._last = found
                self._serving.load(*found)
                self._loaded()
        except (OSError, Unusable) as error:
            self._log.warning("certificate files not used", error=str(error))

    def _loaded(self) -> None:
        if self._serving.certificate is not None:
            self._metrics.served(self._serving.certificate)
            self._log.info("serving a new certificate", until=str(self._serving.certificate.not_valid_after_utc))

"""Certificates that somebody else renews (cert-manager): files of a mounted Secret, loaded again when they change.

The kubelet swaps a mounted Secret as a whole, but files are read one by one, so a mixed pair can be met: it is refused
and the next look finds both. The caBundle is then the injector's business.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from webhook.certificates.serving import Serving, Unusable
from webhook.metrics import Metrics

CERTIFICATE = "tls.crt"
KEY = "tls.key"


class Files:
    """Keeps `serving` in what the directory's tls.crt and tls.key hold."""

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
        """Load the files where they are not what was seen last; what cannot be used is reported and left."""
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

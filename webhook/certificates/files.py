"""Certificates that cert-manager renews: files of a mounted Secret, loaded again when they change.

The kubelet replaces a mounted Secret as a whole, but its files are read one by one, so a mixed pair may be read. It is
refused, and the next look finds the right pair. cert-manager's injector maintains the caBundle.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

from webhook.certificates.serving import Serving, Unusable

CERTIFICATE = "tls.crt"
KEY = "tls.key"

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Files:
    """Keeps `serving` at the pair in the directory's tls.crt and tls.key; nobody tells the API server a secret path."""

    directory: Path
    serving: Serving
    look_every: float
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
            found = (self.directory / CERTIFICATE).read_bytes(), (self.directory / KEY).read_bytes()
            if found != self._last:
                self._last = found
                self.serving.load(*found)
        except (OSError, Unusable) as error:
            _log.warning("certificate files in %s not used: %s", self.directory, error)

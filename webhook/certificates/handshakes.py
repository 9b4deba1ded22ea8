"""The certificate that callers get, replaced without a restart.

The server listens with a context without a certificate. At each handshake that context hands over
to the current context, which never changes. So a pair that does not load leaves the old pair in
place, and open connections go on.
"""

import ssl
from datetime import datetime

from mpijob_elastic.kube.tls_pair import load_pair
from webhook.certificates.messages import ServedPair


class Unusable(ValueError):
    """A certificate and key that TLS does not accept; the text says why."""


class Handshakes:
    """The served certificate.

    `context` is for the listener; `pair` is None before the first `put`.
    """

    def __init__(self) -> None:
        self.pair: ServedPair | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        self.context.sni_callback = self._hand_over

    def put(self, pair: ServedPair) -> None:
        """Serve this pair from the next handshake on.

        Raises `Unusable`; then the old pair stays.
        """
        context = _context()
        try:
            load_pair(context, pair.certificates + b"\n" + pair.key)
        except ssl.SSLError as error:
            raise Unusable(f"the certificate and key cannot be served: {error}") from error
        self._current = context
        self.pair = pair

    def valid(self, *, now: datetime) -> bool:
        """Return True if the served certificate is valid now."""
        pair = self.pair
        return pair is not None and pair.not_before <= now.timestamp() < pair.not_after

    def expires_at(self) -> float:
        """Return the expiry of the served certificate, in seconds since the epoch.

        It is 0 before there is one.
        """
        return self.pair.not_after if self.pair else 0.0

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

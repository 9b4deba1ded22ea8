"""The content of the Secret, parsed; an unreadable part counts as absent.

Keys: ca.crt, ca.key (the CA that signs the next certificate), tls.crt, tls.key (the served pair), retired-ca.crt (CAs
that no longer sign but may have certificates in use, the served one included).
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mpijob_elastic import names
from webhook.certificates import pairs
from webhook.certificates.pairs import Pair

# A CA is retired once in months, or after the Secret was lost; more than a few mean that something is stuck.
MOST_RETIRED = 6


@dataclass(frozen=True, kw_only=True)
class Content:
    """The parts of the Secret."""

    authority: Pair | None = None
    leaf: Pair | None = None
    retired: tuple[x509.Certificate, ...] = ()

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """Every CA that the API server should trust, in a fixed order, each once."""
        current = self.authority.certificate if self.authority else None
        return tuple(dict.fromkeys([*([current] if current and pairs.is_authority(current) else []), *self.retired]))

    @property
    def secret_path(self) -> str:
        """The path at which the API server asks about evictions, "" without a CA; it changes with the CA."""
        key = self.authority.key_pem if self.authority else b""
        return names.PATH_EVICT + hmac.new(key, names.EVICTIONS_HOOK.encode(), "sha256").hexdigest() if key else ""


def parse(data: Mapping[str, bytes]) -> Content:
    """Return the content of the Secret's `data`."""
    return Content(
        authority=pairs.parse(data.get("ca.crt"), data.get("ca.key")),
        leaf=pairs.parse(data.get("tls.crt"), data.get("tls.key")),
        retired=pairs.parse_bundle(data.get("retired-ca.crt", b""))[:MOST_RETIRED],
    )


def render(content: Content) -> dict[str, bytes | None]:
    """Return the Secret's `data`; None removes a key."""
    return {
        **_render_pair("ca", content.authority),
        **_render_pair("tls", content.leaf),
        "retired-ca.crt": bundle(content.retired) or None,
    }


def bundle(certificates: tuple[x509.Certificate, ...]) -> bytes:
    """Return the certificates as concatenated PEM."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _render_pair(name: str, pair: Pair | None) -> dict[str, bytes | None]:
    return {
        f"{name}.crt": pair.certificate_pem if pair else None,
        f"{name}.key": pair.key_pem if pair else None,
    }

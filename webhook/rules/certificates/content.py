"""What the Secret holds, parsed; a part that cannot be read counts as absent.

Keys of the Secret: ca.crt, ca.key (the CA that signs), tls.crt, tls.key (what is served), next-ca.crt, next-ca.key (a
CA that is trusted but does not sign yet), retired-ca.crt (CAs that sign no more but may have certificates in use).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from webhook.rules.certificates import pairs
from webhook.rules.certificates.pairs import Pair

# A CA is retired once in months, or when the Secret was lost; more than a few means that something is stuck.
MOST_RETIRED = 6


@dataclass(frozen=True, kw_only=True)
class Content:
    """The parts of the Secret."""

    authority: Pair | None = None
    leaf: Pair | None = None
    following: Pair | None = None
    retired: tuple[x509.Certificate, ...] = ()

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """Every CA that the API server should trust, in a fixed order, each once."""
        current = [pair.certificate for pair in (self.authority, self.following) if pair and pair.authority]
        return tuple(dict.fromkeys([*current, *self.retired]))


def parse(data: Mapping[str, bytes]) -> Content:
    """The content of the Secret's `data`."""
    return Content(
        authority=pairs.parse(data.get("ca.crt"), data.get("ca.key")),
        leaf=pairs.parse(data.get("tls.crt"), data.get("tls.key")),
        following=pairs.parse(data.get("next-ca.crt"), data.get("next-ca.key")),
        retired=pairs.parse_bundle(data.get("retired-ca.crt", b""))[:MOST_RETIRED],
    )


def render(content: Content) -> dict[str, bytes | None]:
    """The Secret's `data` for it; None where a key is to be removed."""
    return {
        **_render_pair("ca", content.authority),
        **_render_pair("tls", content.leaf),
        **_render_pair("next-ca", content.following),
        "retired-ca.crt": bundle(content.retired) or None,
    }


def bundle(certificates: tuple[x509.Certificate, ...]) -> bytes:
    """PEM, one after the other."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _render_pair(name: str, pair: Pair | None) -> dict[str, bytes | None]:
    return {
        f"{name}.crt": pair.certificate_pem if pair else None,
        f"{name}.key": pair.key_pem if pair else None,
    }

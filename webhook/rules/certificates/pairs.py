"""A certificate with its private key, read from and written as PEM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

E = TypeVar("E", bound=x509.ExtensionType)

# The curves that `issue` uses; OpenSSL cannot serve every curve it can read.
_CURVES = frozenset({ec.SECP256R1.name, ec.SECP384R1.name})


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and the key it is about."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key, unencrypted PKCS #8."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def authority(self) -> bool:
        """True if the certificate may sign others."""
        return is_authority(self.certificate)

    def signed(self, certificate: x509.Certificate) -> bool:
        """Return True if this key signed that certificate."""
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True


def parse(certificate: bytes | None, key: bytes | None) -> Pair | None:
    """Return the pair; None if a half is missing, unreadable, of a foreign kind, or does not fit the other."""
    if certificate is None or key is None:
        return None
    try:
        # Reads only the first certificate; we write exactly one.
        parsed = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, password=None)
        fits = parsed.public_key() == private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not fits or not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name not in _CURVES:
        return None
    return Pair(certificate=parsed, key=private)


def parse_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the CA certificates of a bundle, in its order, each once; () if it is unreadable."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return ()
    return tuple(dict.fromkeys(filter(is_authority, certificates)))


def is_authority(certificate: x509.Certificate) -> bool:
    """Return True if its basic constraints make it a CA."""
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def fault(certificate: x509.Certificate, *, now: datetime) -> str:
    """Return why it is not valid now, or ""."""
    if now < certificate.not_valid_before_utc:
        return f"not valid before {certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
    if now >= certificate.not_valid_after_utc:
        return f"expired at {certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    return ""


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return its DNS names and addresses."""
    found = _extension(certificate, x509.SubjectAlternativeName)
    if found is None:
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset([*found.get_values_for_type(x509.DNSName), *addresses])


def _extension(certificate: x509.Certificate, kind: type[E]) -> E | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return None

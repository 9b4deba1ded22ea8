"""A certificate with its private key: made, read from PEM and written as PEM."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mpijob_elastic import names
from webhook.certificates.messages import Lifetimes

E = TypeVar("E", bound=x509.ExtensionType)

# The curves of our keys; OpenSSL cannot serve every curve it can read.
_CURVES = frozenset({ec.SECP256R1.name, ec.SECP384R1.name})

AUTHORITY_NAME = f"{names.WEBHOOK}-ca-"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and its private key."""

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


def authority(*, now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a self-signed CA.

    Its name is unique, so that a verifier never confuses two of our CAs.
    """
    key = ec.generate_private_key(ec.SECP384R1())
    name = _name(f"{AUTHORITY_NAME}{x509.random_serial_number():x}"[:64])
    builder = (
        _builder(name, key, ca=True)
        .issuer_name(name)
        .not_valid_before(now - lifetimes.backdate)
        .not_valid_after(now + lifetimes.authority)
    )
    return Pair(certificate=builder.sign(key, hashes.SHA384()), key=key)


def leaf(signer: Pair, hosts: frozenset[str], *, now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a serving certificate for DNS names and addresses; it never outlives its CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(names.WEBHOOK), key, ca=False)
        .issuer_name(signer.certificate.subject)
        .not_valid_before(now - lifetimes.backdate)
        .not_valid_after(min(now + lifetimes.leaf, signer.certificate.not_valid_after_utc))
        .add_extension(
            x509.SubjectAlternativeName([_general(host) for host in sorted(hosts)]), critical=False
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()),
            critical=False,
        )
    )
    return Pair(certificate=builder.sign(signer.key, hashes.SHA384()), key=key)


def parse(certificate: bytes | None, key: bytes | None) -> Pair | None:
    """Return the pair; None if it is not usable.

    That is if a half is missing, unreadable, of a foreign kind, or does not fit the other.
    """
    if certificate is None or key is None:
        return None
    try:
        # Reads only the first certificate; we write exactly one.
        parsed = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, password=None)
        fits = parsed.public_key() == private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if (
        not fits
        or not isinstance(private, ec.EllipticCurvePrivateKey)
        or private.curve.name not in _CURVES
    ):
        return None
    return Pair(certificate=parsed, key=private)


def parse_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the CA certificates of a bundle, in its order, each once; () if it is unreadable."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return ()
    return tuple(dict.fromkeys(filter(is_authority, certificates)))


def end_of(pem: bytes) -> float:
    """Return when a certificate ends, in seconds since the epoch; 0 if it is unreadable."""
    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    except ValueError:
        return 0.0


def bundle(certificates: tuple[x509.Certificate, ...]) -> bytes:
    """Return the certificates as concatenated PEM."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def signed(certificate: x509.Certificate, *, by: x509.Certificate) -> bool:
    """Return True if that CA signed the certificate."""
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def is_authority(certificate: x509.Certificate) -> bool:
    """Return True if the basic constraints of a certificate make it a CA."""
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def fault(certificate: x509.Certificate, *, now: datetime) -> str:
    """Return the reason why a certificate is not valid now, "" if it is."""
    if now < certificate.not_valid_before_utc:
        return f"not valid before {certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
    if now >= certificate.not_valid_after_utc:
        return f"expired at {certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    return ""


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names and addresses of a certificate."""
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


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool
) -> x509.CertificateBuilder:
    """Start a certificate: a CA only signs, any other only serves."""
    usage = x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

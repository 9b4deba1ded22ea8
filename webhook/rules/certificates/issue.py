"""Make CAs and the certificates they sign."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mpijob_elastic import names
from webhook.rules.certificates.pairs import Pair

AUTHORITY_NAME = f"{names.WEBHOOK}-ca-"


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """Lifetimes of certificates, and how far in the past they begin, for peers with slow clocks."""

    authority: timedelta = timedelta(days=365)
    leaf: timedelta = timedelta(days=7)
    backdate: timedelta = timedelta(minutes=5)


def authority(*, now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a self-signed CA. Its name is unique, so that a verifier never confuses two of our CAs."""
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
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in sorted(hosts)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
    )
    return Pair(certificate=builder.sign(signer.key, hashes.SHA384()), key=key)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.CertificateBuilder:
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

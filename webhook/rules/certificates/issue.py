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
_SIGNING_ONLY = {"key_cert_sign": True, "crl_sign": True, "digital_signature": False}
_SERVING_ONLY = {"key_cert_sign": False, "crl_sign": False, "digital_signature": True}


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """Lifetimes of certificates, and how far in the past they begin, for peers with slow clocks."""

    authority: timedelta = timedelta(days=365)
    leaf: timedelta = timedelta(days=7)
    backdate: timedelta = timedelta(minutes=5)


def authority(*, now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a self-signed CA. Its name is unique, so that a verifier never confuses two of our CAs."""
    key = ec.generate_private_key(ec.SECP384R1())
    serial = x509.random_serial_number()
    name = _name(f"{AUTHORITY_NAME}{serial:x}"[:64])
    builder = (
        _builder(name, serial, now=now, lifetimes=lifetimes, until=now + lifetimes.authority)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(_SIGNING_ONLY), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(certificate=builder.sign(key, hashes.SHA384()), key=key)


def leaf(signer: Pair, hosts: frozenset[str], *, now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a serving certificate for DNS names and addresses; it never outlives its CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetimes.leaf, signer.certificate.not_valid_after_utc)
    serial = x509.random_serial_number()
    builder = (
        _builder(_name(names.WEBHOOK), serial, now=now, lifetimes=lifetimes, until=until)
        .issuer_name(signer.certificate.subject)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in sorted(hosts)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(_SERVING_ONLY), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
    )
    return Pair(certificate=builder.sign(signer.key, hashes.SHA384()), key=key)


def _builder(
    subject: x509.Name, serial: int, *, now: datetime, lifetimes: Lifetimes, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(serial)
        .not_valid_before(now - lifetimes.backdate)
        .not_valid_after(until)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(bits: dict[str, bool]) -> x509.KeyUsage:
    return x509.KeyUsage(
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
        **bits,
    )

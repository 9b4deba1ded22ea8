"""Keys and certificates of one lab: its own CA, and what each component shows to the others.

Everything is elliptic (P-256), so that making all of it costs milliseconds. Keys are files of mode
0600.
"""

import datetime as dt
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=365)
# Clocks of a machine and its virtual guests differ by some minutes now and then.
SKEW = dt.timedelta(hours=1)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


def write_private(path: Path, content: bytes) -> None:
    """Create `path` readable by its owner only; it is never readable by others, not even for an instant."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def write_service_account_keys(directory: Path) -> KeyPair:
    """Write the key that signs ServiceAccount tokens, and its public half as the "certificate"."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pair = KeyPair(
        certificate=directory / "service-account.pub", key=directory / "service-account.key"
    )
    write_private(pair.key, _pem(key))
    pair.certificate.write_bytes(public)
    return pair


class Authority:
    """A certificate authority that lives as long as the process that made it; its key is never written."""

    def __init__(self, directory: Path, name: str, *, now: dt.datetime) -> None:
        self._directory = directory
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = directory / f"{name}.crt"
        self.certificate.write_bytes(self._self_signed().public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, *, user: str, group: str | None = None, hosts: tuple[str, ...] = ()
    ) -> KeyPair:
        """Write `name`.crt and `name`.key for a client called `user` in `group`, a server too if `hosts` are given.

        Hosts are names and addresses; loopback is always among them.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        if group:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usages = [
            ExtendedKeyUsageOID.CLIENT_AUTH,
            *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else []),
        ]
        builder = (
            self._builder(x509.Name(attributes), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if hosts:
            names = [_general_name(host) for host in (*hosts, LOOPBACK)]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = KeyPair(
            certificate=self._directory / f"{name}.crt", key=self._directory / f"{name}.key"
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        write_private(pair.key, _pem(key))
        return pair

    def _self_signed(self) -> x509.Certificate:
        # Go's verifier wants a CA to say that it is one and that it may sign.
        usage = x509.KeyUsage(
            key_cert_sign=True,
            crl_sign=True,
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        # Python's verifier (VERIFY_X509_STRICT, the default from 3.13) wants both key identifiers.
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - SKEW)
            .not_valid_after(self._now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

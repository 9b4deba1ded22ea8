"""The certificate that a client gets in the handshake: from files or the Secret, before and after an exchange."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tests.product.webhook.certificates.material import DAY, HOST, authority, leaf
from webhook.certificates.handshakes import Unusable
from webhook.certificates.pairs import Pair
from webhook.certificates.serving import Files, Serving

NOW = datetime.now(UTC)
CA = authority(now=NOW)
PAIR, ONE, TWO = (leaf(CA, now=NOW) for _ in range(3))


class Listener:
    """A TLS server that greets; `seen` is who a client with that trust is greeted by."""

    def __init__(self, serving: Serving, server: asyncio.Server) -> None:
        self.serving = serving
        self._port = server.sockets[0].getsockname()[1]

    async def seen(self, trusted: Pair | None) -> x509.Certificate:
        context = ssl.create_default_context(
            cadata=trusted.certificate_pem.decode() if trusted else None
        )
        if trusted is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=context, server_hostname=HOST
        )
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return x509.load_der_x509_certificate(der)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    serving = Serving()
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving.context)
    yield Listener(serving, server)
    server.close()


async def test_before_the_first_certificate_a_handshake_fails(listener: Listener) -> None:
    with pytest.raises((ConnectionError, ssl.SSLError)):
        await listener.seen(None)
    assert listener.serving.certificate is None


async def test_certificates_are_exchanged_while_it_listens(listener: Listener) -> None:
    for pair in (ONE, TWO, PAIR):
        listener.serving.load(pair.certificate_pem, pair.key_pem)
        assert await listener.seen(CA) == pair.certificate
    with pytest.raises(ssl.SSLCertVerificationError):
        await listener.seen(authority(now=NOW))


async def test_a_change_of_key_type_leaves_nothing_of_the_old(listener: Listener) -> None:
    """cert-manager makes RSA keys by default."""
    listener.serving.load(PAIR.certificate_pem, PAIR.key_pem)
    key = rsa.generate_private_key(65537, 2048)
    issuer, nobody = CA.certificate.subject, x509.Name([])
    builder = x509.CertificateBuilder(issuer, nobody, key.public_key(), 7, NOW - DAY, NOW + DAY)
    certificate = builder.sign(CA.key, hashes.SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    listener.serving.load(certificate.public_bytes(Encoding.PEM), pem)
    assert await listener.seen(None) == certificate


ENCRYPTED = PAIR.key.private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (b"", b""),
        (PAIR.certificate_pem, b""),
        (PAIR.certificate_pem, CA.key_pem),
        (PAIR.certificate_pem, ENCRYPTED),
        (PAIR.certificate_pem[:-80], PAIR.key_pem),
    ],
)
async def test_what_cannot_be_served_leaves_the_old_one(
    listener: Listener, certificate: bytes, key: bytes
) -> None:
    listener.serving.load(ONE.certificate_pem, ONE.key_pem)
    with pytest.raises(Unusable, match="cannot be served"):
        listener.serving.load(certificate, key)
    assert listener.serving.certificate == await listener.seen(CA) == ONE.certificate
    assert listener.serving.context.minimum_version is ssl.TLSVersion.TLSv1_2


class Mounted:
    """A directory and the server that follows it."""

    def __init__(self, tmp_path: Path) -> None:
        self.directory, self.serving = tmp_path, Serving()
        self._files = Files(directory=tmp_path, serving=self.serving, look_every=10.0)

    def write(self, *, certificate: Pair | None = None, key: Pair | None = None) -> None:
        if certificate:
            (self.directory / "tls.crt").write_bytes(
                certificate.certificate_pem + CA.certificate_pem
            )
        if key:
            (self.directory / "tls.key").write_bytes(key.key_pem)

    def served(self) -> Pair | None:
        """Look, and return the pair that is served then."""
        self._files.look()
        return next(
            (pair for pair in (ONE, TWO) if pair.certificate == self.serving.certificate), None
        )


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


def test_files_may_come_later_and_change_and_a_mixed_pair_is_not_served(mounted: Mounted) -> None:
    assert mounted.served() is None
    mounted.write(certificate=ONE, key=ONE)
    assert mounted.served() == ONE
    mounted.write(certificate=TWO)
    assert [mounted.served(), mounted.served()] == [ONE, ONE]
    mounted.write(key=TWO)
    assert mounted.served() == TWO


def test_files_that_go_or_break_leave_the_old_ones(mounted: Mounted) -> None:
    mounted.write(certificate=ONE, key=ONE)
    assert mounted.served() == ONE
    (mounted.directory / "tls.key").write_bytes(b"garbage")
    assert mounted.served() == ONE
    (mounted.directory / "tls.key").unlink()
    assert mounted.served() == ONE
    mounted.write(key=ONE)
    assert mounted.served() == ONE

"""Certificates and keys from PEM, and what is said of them."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tests.product.webhook.certificates.material import DAY, HOST, NOON, authority, leaf
from webhook.rules.certificates import content, pairs
from webhook.rules.certificates.pairs import Pair
from webhook.settings import Settings

CA = authority()
LEAF = leaf(CA)
RSA_KEY = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
ODD_CURVE = ec.generate_private_key(ec.SECP256K1())
ENCRYPTED = LEAF.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def test_a_pair_survives_the_way_through_pem() -> None:
    assert pairs.parse(LEAF.certificate_pem, LEAF.key_pem) is not None
    again = pairs.parse(CA.certificate_pem, CA.key_pem)
    assert again is not None
    assert again.certificate == CA.certificate
    assert again.key_pem == CA.key_pem


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (None, LEAF.key_pem),
        (LEAF.certificate_pem, None),
        (b"", b""),
        (b"garbage", LEAF.key_pem),
        (LEAF.certificate_pem, b"garbage"),
        (LEAF.certificate_pem[:-100], LEAF.key_pem),
        (LEAF.certificate_pem, LEAF.key_pem[:-50]),
        (LEAF.key_pem, LEAF.certificate_pem),
        (LEAF.certificate_pem, CA.key_pem),
        (LEAF.certificate_pem, RSA_KEY),
        (LEAF.certificate_pem, ENCRYPTED),
    ],
)
def test_what_is_no_pair_of_ours(certificate: bytes | None, key: bytes | None) -> None:
    assert pairs.parse(certificate, key) is None


def test_a_curve_that_openssl_may_not_serve_is_none_of_ours() -> None:
    now = LEAF.certificate.not_valid_before_utc
    builder = x509.CertificateBuilder(
        CA.certificate.subject, x509.Name([]), ODD_CURVE.public_key(), 7, now, LEAF.certificate.not_valid_after_utc
    )
    odd = Pair(certificate=builder.sign(CA.key, hashes.SHA256()), key=ODD_CURVE)
    assert pairs.parse(odd.certificate_pem, odd.key_pem) is None


def test_a_bundle_is_its_authorities_each_once() -> None:
    other = authority()
    pem = content.bundle((CA.certificate, LEAF.certificate, other.certificate, CA.certificate))
    assert pairs.parse_bundle(pem) == (CA.certificate, other.certificate)
    assert pairs.parse_bundle(b"") == ()
    assert pairs.parse_bundle(b"garbage") == ()
    assert pairs.parse_bundle(pem[:-40]) == (CA.certificate, other.certificate)
    assert pairs.parse_bundle(pem.replace(b"MII", b"AII", 1)) == ()


def test_who_signed_what() -> None:
    assert CA.signed(LEAF.certificate)
    assert CA.signed(CA.certificate)
    assert not authority().signed(LEAF.certificate)
    assert not LEAF.signed(CA.certificate)
    assert pairs.is_authority(CA.certificate)
    assert not pairs.is_authority(LEAF.certificate)


def test_when_it_is_valid() -> None:
    assert pairs.fault(LEAF.certificate, now=NOON) == ""
    assert pairs.fault(LEAF.certificate, now=NOON - DAY) == "not valid before 2026-06-01T11:55:00Z"
    assert pairs.fault(LEAF.certificate, now=NOON + 6 * DAY) == "expired at 2026-06-07T12:00:00Z"


def test_the_names_it_is_for() -> None:
    hosts = frozenset({HOST, "127.0.0.1", "::1"})
    assert pairs.names_of(leaf(CA, hosts=hosts).certificate) == hosts


def test_an_address_in_another_form_is_the_one_in_the_certificate() -> None:
    hosts = Settings(extra_sans=frozenset({"FD00:0:0::1"})).hosts
    assert pairs.names_of(leaf(CA, hosts=hosts).certificate) == hosts
    assert pairs.names_of(CA.certificate) == frozenset()

"""The Secret's content and its pairs, there and back, whole or damaged, and what others make of them."""

from dataclasses import replace

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
from cryptography.x509 import verification
from cryptography.x509.oid import ExtensionOID

from tests.product.webhook.certificates.material import (
    DAY,
    HOST,
    LIFETIMES,
    NOON,
    authority,
    healthy,
    leaf,
)
from webhook.certificates import pairs
from webhook.certificates.decision import MOST_RETIRED, Content, Trust
from webhook.certificates.pairs import Pair
from webhook.server import WebhookSettings


def stored(wanted: Content) -> dict[str, bytes]:
    """Return what the API server keeps of it."""
    return {key: value for key, value in wanted.render().items() if value is not None}


WHOLE = healthy()
PARTS = {"ca": "authority", "tls": "leaf"}


def test_there_and_back() -> None:
    full = replace(WHOLE, retired=(authority().certificate, authority().certificate))
    assert Content.parse(stored(full)).render() == full.render()


def test_absent_parts_are_removed_from_the_secret() -> None:
    gone = {key for key, value in healthy().render().items() if value is None}
    assert gone == {"retired-ca.crt"}


@pytest.mark.parametrize("ending", ["crt", "key"])
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_part_counts_as_absent_and_spares_the_others(part: str, ending: str) -> None:
    damaged = f"{part}.{ending}"
    for value in (b"garbage", stored(WHOLE)[damaged][:-60]):
        read = Content.parse({**stored(WHOLE), damaged: value})
        assert [name for name in PARTS.values() if getattr(read, name) is None] == [PARTS[part]]


def test_all_that_is_trusted_in_order_and_once() -> None:
    current, retired = authority(), authority()
    trusted = Content(authority=current, retired=(retired.certificate, current.certificate)).trusted
    assert trusted == (current.certificate, retired.certificate)
    assert Content().trusted == ()


@pytest.mark.parametrize("pair", [authority(), leaf(authority())], ids=["a CA", "a leaf"])
def test_who_does_not_know_what_a_key_is_for_must_not_use_it(pair: Pair) -> None:
    critical = {one.oid for one in pair.certificate.extensions if one.critical}
    assert {ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE} <= critical


def test_the_retired_are_bounded() -> None:
    many = tuple(authority().certificate for _ in range(MOST_RETIRED + 2))
    assert Content.parse({"retired-ca.crt": pairs.bundle(many)}).retired == many[:MOST_RETIRED]


CA = authority()
LEAF = leaf(CA)
RSA_KEY = rsa.generate_private_key(65537, 2048).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)
ODD_CURVE = ec.generate_private_key(ec.SECP256K1())
ENCRYPTED = LEAF.key.private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (None, LEAF.key_pem),
        (LEAF.certificate_pem, None),
        (LEAF.certificate_pem, CA.key_pem),
        (LEAF.certificate_pem, RSA_KEY),
        (LEAF.certificate_pem, ENCRYPTED),
    ],
)
def test_what_is_no_pair_of_ours(certificate: bytes | None, key: bytes | None) -> None:
    assert pairs.parse(certificate, key) is None


def test_a_curve_that_openssl_may_not_serve_is_none_of_ours() -> None:
    issuer, nobody = CA.certificate.subject, x509.Name([])
    builder = x509.CertificateBuilder(
        issuer, nobody, ODD_CURVE.public_key(), 7, NOON - DAY, NOON + DAY
    )
    odd = Pair(certificate=builder.sign(CA.key, hashes.SHA256()), key=ODD_CURVE)
    assert pairs.parse(odd.certificate_pem, odd.key_pem) is None


def test_a_bundle_is_its_authorities_each_once() -> None:
    other = authority()
    pem = pairs.bundle((CA.certificate, LEAF.certificate, other.certificate, CA.certificate))
    assert pairs.parse_bundle(pem) == (CA.certificate, other.certificate)
    assert pairs.parse_bundle(b"garbage") == ()
    assert pairs.parse_bundle(pem[:-40]) == (CA.certificate, other.certificate)
    assert pairs.parse_bundle(pem.replace(b"MII", b"AII", 1)) == ()


def test_who_signed_what() -> None:
    found = [pairs.signed(one.certificate, by=CA.certificate) for one in (LEAF, CA, authority())]
    assert found == [True, True, False]
    assert not pairs.signed(CA.certificate, by=LEAF.certificate)
    assert [pairs.is_authority(pair.certificate) for pair in (CA, LEAF)] == [True, False]


def test_an_address_in_another_form_is_the_one_in_the_certificate() -> None:
    hosts = WebhookSettings(extra_sans=frozenset({"FD00:0:0::1", "127.0.0.1"})).hosts
    assert pairs.names_of(leaf(CA, hosts=hosts).certificate) == hosts
    assert pairs.names_of(CA.certificate) == frozenset()


def test_a_verifier_accepts_the_chain_for_the_name_only() -> None:
    store = verification.Store([authority().certificate, CA.certificate])
    builder = verification.PolicyBuilder().store(store).time(NOON)
    chain = builder.build_server_verifier(x509.DNSName(HOST)).verify(LEAF.certificate, [])
    assert chain == [LEAF.certificate, CA.certificate]
    for other in ("mpijob-elastic-webhook", "kubernetes.default.svc"):
        with pytest.raises(verification.VerificationError):
            builder.build_server_verifier(x509.DNSName(other)).verify(LEAF.certificate, [])


def test_lifetimes() -> None:
    assert CA.certificate.not_valid_before_utc == NOON - LIFETIMES.backdate
    assert CA.certificate.not_valid_after_utc == NOON + 360 * DAY
    assert LEAF.certificate.not_valid_after_utc == NOON + 6 * DAY
    # A certificate never outlives its authority.
    assert leaf(CA, now=NOON + 358 * DAY).certificate.not_valid_after_utc == NOON + 360 * DAY


def test_two_authorities_differ_in_name_and_key() -> None:
    one, two = authority(), authority()
    assert one.certificate.subject != two.certificate.subject
    assert one.key_pem != two.key_pem


ONE, TWO = authority().certificate, authority().certificate
SEEN = Trust().seen([[ONE], [ONE, TWO]], at=0.0)
AGAIN = Trust().seen([[ONE]], at=0.0).seen([[ONE]], at=4.0)
AFTER_A_GAP = AGAIN.seen([[]], at=6.0).seen([[ONE]], at=7.0)


@pytest.mark.parametrize(
    ("trust", "certificate", "at", "carries"),
    [
        pytest.param(Trust(), ONE, 100.0, False, id="before the first look"),
        pytest.param(SEEN, ONE, 4.9, False, id="every bundle, but not for long"),
        pytest.param(SEEN, ONE, 5.0, True, id="every bundle for a while"),
        pytest.param(SEEN, TWO, 5.0, False, id="one bundle only"),
        pytest.param(AGAIN, ONE, 5.0, True, id="later looks keep the first time"),
        pytest.param(AFTER_A_GAP, ONE, 11.0, False, id="a gap begins anew"),
        pytest.param(AFTER_A_GAP, ONE, 12.0, True, id="and ends"),
        pytest.param(Trust().seen([], at=0.0), ONE, 0.0, True, id="no configuration is installed"),
    ],
)
def test_since_when_a_ca_is_trusted_everywhere(
    trust: Trust, certificate: x509.Certificate, at: float, carries: bool
) -> None:
    assert trust.carries(certificate, at=at, settled=5.0) is carries

"""Certificates as others judge them: OpenSSL in a handshake, and a verifier that follows RFC 5280."""

from cryptography import x509
from cryptography.x509 import verification

from tests.product.webhook.certificates.material import DAY, HOST, LIFETIMES, NOON, authority, leaf


def test_a_verifier_accepts_the_chain_for_the_name_only() -> None:
    ca = authority()
    served = leaf(ca, hosts=frozenset({HOST, "127.0.0.1"}))
    store = verification.Store([authority().certificate, ca.certificate])
    builder = verification.PolicyBuilder().store(store).time(NOON)

    chain = builder.build_server_verifier(x509.DNSName(HOST)).verify(served.certificate, [])
    assert chain == [served.certificate, ca.certificate]
    for other in ("mpijob-elastic-webhook", "kubernetes.default.svc"):
        try:
            builder.build_server_verifier(x509.DNSName(other)).verify(served.certificate, [])
        except verification.VerificationError:
            continue
        raise AssertionError(other)


def test_lifetimes() -> None:
    ca = authority()
    assert ca.certificate.not_valid_before_utc == NOON - LIFETIMES.backdate
    assert ca.certificate.not_valid_after_utc == NOON + 360 * DAY
    assert leaf(ca).certificate.not_valid_after_utc == NOON + 6 * DAY


def test_a_certificate_never_outlives_its_authority() -> None:
    ca = authority()
    late = leaf(ca, now=NOON + 358 * DAY)
    assert late.certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc


def test_two_authorities_differ_in_name_and_key() -> None:
    one, two = authority(), authority()
    assert one.certificate.subject != two.certificate.subject
    assert one.key_pem != two.key_pem

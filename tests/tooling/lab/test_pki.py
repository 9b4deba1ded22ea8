"""Certificates of the lab verify against its CA, and against no other; keys are private files."""

import datetime as dt
import ipaddress
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from lab.pki import Authority, KeyPair, write_service_account_keys

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def issue(authority: Authority) -> KeyPair:
    return authority.issue("server", user="u", group="g", hosts=("localhost",))


def test_a_server_certificate_verifies_for_its_hosts(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca", now=NOW)
    pair = issue(authority)
    policy = PolicyBuilder().store(Store([load(authority.certificate)])).time(NOW)
    policy.build_server_verifier(x509.DNSName("localhost")).verify(load(pair.certificate), [])
    with pytest.raises(VerificationError):
        policy.build_server_verifier(x509.DNSName("elsewhere")).verify(load(pair.certificate), [])


def test_a_server_certificate_verifies_for_its_addresses(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca", now=NOW)
    pair = authority.issue("server", user="u", hosts=("10.96.0.1",))
    policy = PolicyBuilder().store(Store([load(authority.certificate)])).time(NOW)
    for address in ("10.96.0.1", "127.0.0.1"):
        policy.build_server_verifier(x509.IPAddress(ipaddress.ip_address(address))).verify(load(pair.certificate), [])


def test_a_certificate_of_another_authority_does_not_verify(tmp_path: Path) -> None:
    pair = issue(Authority(tmp_path, "ca", now=NOW))
    other = Authority(tmp_path, "ca", now=NOW)
    verifier = PolicyBuilder().store(Store([load(other.certificate)])).time(NOW).build_client_verifier()
    with pytest.raises(VerificationError):
        verifier.verify(load(pair.certificate), [])


def test_user_and_group_are_where_the_api_server_reads_them(tmp_path: Path) -> None:
    certificate = load(issue(Authority(tmp_path, "ca", now=NOW)).certificate)
    assert certificate.subject.rfc4514_string() == "O=g,CN=u"


def test_keys_are_private(tmp_path: Path) -> None:
    pairs = (issue(Authority(tmp_path, "ca", now=NOW)), write_service_account_keys(tmp_path))
    assert [stat.S_IMODE(pair.key.stat().st_mode) for pair in pairs] == [0o600, 0o600]
    assert not (tmp_path / "ca.key").exists(), "the key of the CA is never written"

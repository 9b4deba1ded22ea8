"""Certificates from a directory, as a mounted Secret changes there."""

from pathlib import Path

import pytest

from tests.product.webhook.certificates.material import authority, leaf
from webhook.certificates.files import Files
from webhook.certificates.serving import Serving
from webhook.rules.certificates.pairs import Pair

CA = authority()
ONE, TWO = leaf(CA), leaf(CA)


class Mounted:
    """A directory and the server that follows it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.serving = Serving()
        self._files = Files(directory=directory, serving=self.serving, look_every=10.0)

    def write(self, *, certificate: Pair | None = None, key: Pair | None = None) -> None:
        if certificate:
            (self.directory / "tls.crt").write_bytes(certificate.certificate_pem + CA.certificate_pem)
        if key:
            (self.directory / "tls.key").write_bytes(key.key_pem)

    def served(self) -> Pair | None:
        """Look, and return the pair that is served then."""
        self._files.look()
        return next((pair for pair in (ONE, TWO) if pair.certificate == self.serving.certificate), None)


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


def test_files_may_come_later_and_change(mounted: Mounted) -> None:
    assert mounted.served() is None
    mounted.write(certificate=ONE, key=ONE)
    assert mounted.served() == ONE
    mounted.write(certificate=TWO, key=TWO)
    assert mounted.served() == TWO


def test_a_mixed_pair_is_not_served_until_both_files_are_there(mounted: Mounted) -> None:
    mounted.write(certificate=ONE, key=ONE)
    assert mounted.served() == ONE
    mounted.write(certificate=TWO)
    assert mounted.served() == ONE
    assert mounted.served() == ONE
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

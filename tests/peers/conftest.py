"""Programs of other projects: `make test-peers` builds them, and tests of what is not built are skipped."""

from pathlib import Path

import pytest

from lab.build import built_peer


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program."""
    return peer("helm")


def peer(name: str) -> Path:
    """Return the path of a peer; skip the test if it is not built."""
    path = built_peer(name)
    if path is None:
        pytest.skip(f"{name} is not built here: make test-peers")
    return path

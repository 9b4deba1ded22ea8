"""Programs of other projects that `make test-peers` builds."""

from pathlib import Path

import pytest

from lab.build import built_peer


def peer(name: str) -> Path:
    """Return the path of a peer; skip the test if it is not built."""
    path = built_peer(name)
    if path is None:
        pytest.skip(f"{name} is not built here: make test-peers")
    return path

"""Programs of other projects, which `make test-peers` builds, and of which CI names those that it needs."""

import os
from pathlib import Path

import pytest

from lab.build import built_peer

# The peers that must be there, and no others count; without it, those that are built.
NAMED = os.environ["PEERS"].split() if "PEERS" in os.environ else None


def peer(name: str) -> Path:
    """Return the path of a peer.

    Skip the test if it is not named, or not built; fail it if it is named but not built.
    """
    if NAMED is not None and name not in NAMED:
        pytest.skip(f"{name} is not among PEERS")
    path = built_peer(name)
    if path is None:
        (pytest.skip if NAMED is None else pytest.fail)(
            f"{name} is not built here: make test-peers"
        )
    return path

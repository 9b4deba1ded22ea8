"""Tests of lab/, bench/ and the campaign, which `make test` leaves to `make test-all`."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.thorough)

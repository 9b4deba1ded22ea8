"""Commands in a cluster that answers what the test says."""

from pathlib import Path

import pytest

from tests.product.cli.cluster import Commands


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)

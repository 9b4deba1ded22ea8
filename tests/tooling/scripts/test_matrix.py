"""The tests that run on each version of Kubernetes."""

import pytest

from scripts import matrix


@pytest.mark.parametrize("pattern", matrix.TESTS)
def test_each_is_there(pattern: str) -> None:
    assert [*(matrix.ROOT / "tests" / "lab").glob(pattern)]

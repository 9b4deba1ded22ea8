"""A row of the matrix says what pytest said, or why it did not run."""

from pathlib import Path

import pytest

from lab.versions import PINNED_KUBERNETES
from scripts import matrix

LAB = Path(__file__).parents[3] / "tests" / "lab"


@pytest.mark.parametrize(
    ("code", "output", "expected"),
    [
        (0, "...\n===== 21 passed in 95.04s (0:01:35) =====\n", "21 passed"),
        (1, "FAILED x - 1 passed\n== 1 failed, 20 passed, 3 skipped in 9.1s ==\n", "1 failed, 20 passed, 3 skipped"),
        (2, "building etcd\n`go build` ended with 1\n", "not run (2): `go build` ended with 1"),
        (4, "", "not run (4): "),
    ],
)
def test_a_row_is_the_result(code: int, output: str, expected: str) -> None:
    assert matrix.result(code, output) == expected


def test_the_tests_of_the_matrix_are_there() -> None:
    assert [name for name in matrix.TESTS if not (LAB / f"test_{name}.py").exists()] == []
    assert str(PINNED_KUBERNETES) in matrix.VERSIONS
    assert {"upgrade_apply", "install_guard", "scenario_scaling"} <= set(matrix.TESTS)

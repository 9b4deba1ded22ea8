"""Times of other clocks."""

import pytest

from mpijob_elastic.decide.state import honest


@pytest.mark.parametrize(
    ("at", "believed"),
    [(0.0, 0.0), (999.0, 999.0), (1000.0, 1000.0), (1005.0, 1005.0), (1005.1, 0.0), (float("inf"), 0.0)],
)
def test_a_time_is_believed_up_to_the_skew_of_two_clocks(at: float, believed: float) -> None:
    assert honest(at, now=1000.0) == believed

"""Middle, ends, percentiles."""

import pytest

from bench.statistics import Spread, percentile, spread


def test_a_spread_has_the_middle_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(median=2.0, least=1.0, most=3.0)


@pytest.mark.parametrize(("percent", "value"), [(50, 50.0), (99, 99.0), (99.5, 100.0), (100, 100.0), (0, 1.0)])
def test_a_percentile_is_the_sample_of_that_rank(percent: float, value: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == value


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)

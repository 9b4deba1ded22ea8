"""The estimate of the first build, which says nothing rather than the same for minutes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.estimate import left

SECONDS = st.floats(0.1, 10_000)


@pytest.mark.parametrize(
    ("done", "took", "elapsed", "expected"),
    [
        pytest.param(0, 0.0, 15.0, None, id="nothing has ended"),
        pytest.param(5, 60.0, 75.0, None, id="a short one has ended"),
        pytest.param(100, 100.0, 100.0, 300, id="as fast as on two free cores"),
        pytest.param(100, 250.0, 250.0, 750, id="a busy machine takes longer"),
        pytest.param(100, 250.0, 550.0, 450, id="time goes by"),
        pytest.param(100, 250.0, 1_001.0, None, id="what was expected did not come"),
    ],
)
def test_the_builds_that_have_ended_say_what_is_left(
    done: int, took: float, elapsed: float, expected: int | None
) -> None:
    assert left(done=done, everything=400, took=took, elapsed=elapsed) == expected


@given(done=st.integers(0, 399), took=SECONDS, since=SECONDS, minutes=st.integers(1, 10))
def test_it_never_stands_still(done: int, took: float, since: float, minutes: int) -> None:
    earlier = left(done=done, everything=400, took=took, elapsed=took + since)
    later = left(done=done, everything=400, took=took, elapsed=took + since + 60 * minutes)
    assert later is None or (earlier is not None and later < earlier)

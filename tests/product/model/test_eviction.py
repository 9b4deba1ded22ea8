import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import eviction
from mpijob_elastic.model.eviction import RETRIED_WITHIN, Eviction

NOW = 1_700_000_000.0


@given(st.integers(min_value=0, max_value=10**10))
def test_what_is_written_is_read(at: int) -> None:
    assert eviction.parse(eviction.requested(at)) == Eviction(released=False, at=at)
    assert eviction.parse(eviction.released(at)) == Eviction(released=True, at=at)


@given(st.text())
def test_no_other_text_counts(text: str) -> None:
    assert eviction.parse(text) is None


@pytest.mark.parametrize(
    "text", [None, "", "requested", "requested 2026", "requested 2026-13-01T00:00:00", "later 2026-11-23T00:00:00Z"]
)
def test_bad_marks_do_not_count(text: str | None) -> None:
    assert eviction.parse(text) is None


@pytest.mark.parametrize(
    ("released", "age", "live"),
    [
        (False, 0, True),
        (False, 30 + RETRIED_WITHIN - 1, True),
        (False, 30 + RETRIED_WITHIN, False),
        (True, RETRIED_WITHIN - 1, True),
        (True, RETRIED_WITHIN, False),
        (False, -5, True),
        (False, -6, False),
        (True, -6, False),
    ],
)
def test_a_mark_ends_by_its_time_and_one_from_the_future_does_not_count(released: bool, age: float, live: bool) -> None:
    assert Eviction(released=released, at=NOW - age).is_live(drain_timeout=30.0, now=NOW) is live

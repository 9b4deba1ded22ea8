"""Durations as users write them and as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("90s", 90.0),
        ("1m30s", 90.0),
        ("1.5m", 90.0),
        ("500ms", 0.5),
        ("2h", 7200.0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", " ", "90", "s", "-1s", "+1s", "1 s", "1s ", "1s\n", "1d", "1S", "1.s", ".5s", "1e3s", "NaN", "inf", "٣s"],
)
def test_what_go_would_not_read_is_no_duration(text: str) -> None:
    assert durations.parse(text) is None


def test_a_text_longer_than_any_sensible_duration_is_none() -> None:
    assert durations.parse("9" * 10_000 + "h") is None


@given(st.text() | st.from_regex(r"[0-9.]{1,40}(ms|s|m|h)?"))
def test_any_text_gives_a_finite_duration_or_none(text: str) -> None:
    seconds = durations.parse(text)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (4.2, "4.2s"),
        (10.0, "10s"),
        (59.94, "59.9s"),
        (59.96, "1m"),
        (60.0, "1m"),
        (90.4, "1m30s"),
        (3599.7, "1h"),
        (7500.0, "2h5m"),
    ],
)
def test_seconds_are_shown_for_people(seconds: float, text: str) -> None:
    assert durations.render(seconds) == text


@given(st.integers(0, 59) | st.integers(1, 59).map(lambda minutes: minutes * 60))
def test_what_is_shown_is_read_back(seconds: int) -> None:
    assert durations.parse(durations.render(seconds)) == seconds

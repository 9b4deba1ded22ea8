"""The line of progress in the answer of a look, as it is and as nobody should write it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import progress
from mpijob_elastic.model.progress import ProgressLine

LINE = "v1 17 4711 1200 64 2 1000.250 310.5 250.0 900.000 950.125 80.5 3.25 12 1.5 4000"


def read(text: str) -> ProgressLine | None:
    return progress.parse(text, asked_at=1001.0)


def test_each_field_has_its_place() -> None:
    assert read(f"alive {LINE}") == ProgressLine(
        asked_at=1001.0,
        alive=True,
        process=4711,
        step=1200,
        samples=64,
        ranks=2,
        at=1000.25,
        step_ms=310.5,
        own_ms=250.0,
        first=900.0,
        since=950.125,
        kept=80.5,
        repeated=3.25,
        again=12,
        open=1.5,
        total=4000,
    )


def test_what_follows_from_a_line() -> None:
    line = read(f"ended {LINE}")
    assert line is not None
    assert (line.alive, line.done) == (False, 82.0)
    assert round(line.samples_per_second, 1) == 206.1
    assert line.seconds_left == 2800 * 0.3105


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({14: "0"}, id="no total"),
        pytest.param({7: "0"}, id="no time of a step"),
    ],
)
def test_what_a_line_does_not_say_is_not_guessed(changed: dict[int, str]) -> None:
    words = LINE.split()
    for place, word in changed.items():
        words[place if place != 14 else 15] = word
    line = read(f"alive {' '.join(words)}")
    assert line is not None
    assert line.seconds_left is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(LINE, id="nobody says whether the process runs"),
        pytest.param(f"alive {LINE.replace('v1', 'v2')}", id="another version"),
        pytest.param(f"alive {LINE} 1", id="a word more"),
        pytest.param(f"alive {LINE.rpartition(' ')[0]}", id="a word less"),
        pytest.param(f"alive {LINE}\nalive {LINE}", id="two lines"),
        pytest.param(f"alive {LINE.replace('1200', '-1')}", id="a negative step"),
        pytest.param(f"alive {LINE.replace('1200', '1' * 16)}", id="a number that is too long"),
        pytest.param(f"alive {LINE.replace('310.5', 'nan')}", id="no number"),
        pytest.param(f"alive {LINE.replace('310.5', '1e3')}", id="an exponent"),
        pytest.param(f"alive {LINE.replace('1200', '١٢٠٠')}", id="digits of another script"),
        pytest.param(f"alive {LINE.replace('900.000', '960.000')}", id="the ring before its pod"),
        pytest.param(f"alive {LINE.replace('1000.250', '940.000')}", id="a step before its ring"),
        pytest.param(f"alive {LINE.replace('900.000', '0')}", id="a pod of 1970"),
    ],
)
def test_any_other_text_is_no_line(text: str) -> None:
    assert read(text) is None


@given(st.text(max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    assert read(text) is None


def test_of_two_containers_that_share_the_file_the_one_with_the_process_tells() -> None:
    ended, alive = read(f"ended {LINE}"), read(f"alive {LINE}")
    assert ended is not None
    assert alive is not None
    assert progress.newest([ended, alive]) == progress.newest([alive, ended]) == alive
    later = msgspec.structs.replace(ended, at=ended.at + 1)
    assert progress.newest([alive, later]) == later
    assert progress.newest([]) is None

"""The annotation of a job's history: its bounds, and what a second write of a change does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import history
from mpijob_elastic.model.history import (
    LARGEST,
    LONGEST_MANAGER,
    LONGEST_NOTE,
    MOST,
    Change,
    entries,
    merged,
    short,
)

TEXTS = st.text(max_size=200) | st.text(alphabet='"\\\u2028\x00é€', max_size=200)
CHANGES = st.lists(
    st.builds(
        Change,
        at=st.floats(0, 1e11).map(lambda at: round(at, 1)),
        cause=st.sampled_from(["user", "HPA", "failure"]),
        by=TEXTS.map(lambda text: short(text, most=LONGEST_MANAGER)),
        before=st.integers(0, 2**31 - 1),
        after=st.integers(0, 2**31 - 1),
        listed=st.none() | st.floats(0, 1e11),
        trained=st.none() | st.floats(0, 1e11),
        cut=st.integers(0, 2**31 - 1),
        note=TEXTS.map(lambda text: short(text, most=LONGEST_NOTE)),
    ),
    max_size=3,
)
GARBAGE = st.text(max_size=50) | st.sampled_from(
    ["[]", "null", "[[" * 1000, '[{"at":1}]', '{"at":1}', "[1]"]
)


def change(at: float, *, after: int = 3, **facts: object) -> Change:
    return msgspec.structs.replace(
        Change(at=at, cause="user", by="kubectl", before=2, after=after), **facts
    )


@given(st.lists(CHANGES, max_size=60), GARBAGE)
def test_whatever_is_written_keeps_the_latest_within_both_bounds(
    writes: list[list[Change]], before: str
) -> None:
    text = before
    for changes in writes:
        text = merged(text, changes)
        assert len(text.encode()) <= LARGEST
        found = entries(text)
        assert len(found) <= MOST
        latest = {one.key: one for one in changes}
        assert {one.key: one for one in found}.items() >= latest.items()
        assert merged(text, changes) == text


@given(TEXTS, st.integers(0, 100))
def test_a_shortened_text_is_as_long_in_json(text: str, most: int) -> None:
    found = short(text, most=most)
    assert len(msgspec.json.encode(found)) <= most + 2


@pytest.mark.parametrize("most", [100])
@pytest.mark.parametrize("field", ["cause", "by", "note"])
def test_a_change_with_a_longer_text_is_none(field: str, most: int) -> None:
    fits, longer = (
        msgspec.structs.replace(change(1.0), **{field: "x" * size}) for size in (most, most + 1)
    )
    assert entries(merged("", [fits])) == [fits]
    assert entries(merged("", [longer])) == []


def test_a_second_write_completes_a_change_in_its_place() -> None:
    text = merged("", [change(1.0), change(2.0)])
    text = merged(text, [change(1.0, listed=5.0)])
    assert entries(text) == [change(1.0, listed=5.0), change(2.0)]


def test_the_latest_fifty_stay_and_fewer_where_they_are_long() -> None:
    text = merged("", [change(float(at)) for at in range(60)])
    assert [one.at for one in entries(text)] == [float(at) for at in range(10, 60)]
    text = merged(
        "",
        [change(float(at), note="n" * LONGEST_NOTE, by="b" * LONGEST_MANAGER) for at in range(60)],
    )
    assert 25 < len(entries(text)) < MOST
    assert entries(text)[-1].at == 59.0


def test_what_the_mpijob_says_is_added_once() -> None:
    text = merged("", [change(1.0, listed=5.0)])
    assert entries(text, change(1.0)) == [change(1.0, listed=5.0)]
    assert entries(text, change(2.0, after=4), None) == [
        change(1.0, listed=5.0),
        change(2.0, after=4),
    ]
    assert history.read_change("{") is None

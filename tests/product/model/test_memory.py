"""The memory in an annotation: the same comes back, and nothing hostile gets in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import memory_text
from mpijob_elastic.model.memory import Host, Left, Memory, Scale, Tries

TIMES = st.floats(0.0, 1e10)
COUNTS = st.integers(1, 1000)
PODS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TRIES = st.builds(Tries, count=COUNTS, at=TIMES, uid=PODS)
MEMORIES = st.builds(
    Memory,
    left=st.dictionaries(PODS, st.builds(Left, pod=PODS, at=TIMES)),
    added_at=TIMES,
    removed_at=TIMES,
    dropped_at=TIMES,
    scale=st.none() | st.builds(Scale, before=COUNTS, after=COUNTS, at=TIMES),
    replaced=st.dictionaries(PODS, TRIES),
    hosts=st.dictionaries(PODS, st.builds(Host, pod=PODS, incarnation=st.integers(0, 10**8))),
    renamed=st.dictionaries(PODS, TRIES),
    launchers=st.none() | TRIES,
)


@given(MEMORIES)
def test_what_is_written_is_read_back(kept: Memory) -> None:
    assert memory_text.parse(memory_text.render(kept)) == kept


@given(MEMORIES)
def test_the_same_memory_gives_the_same_text_however_it_was_built(kept: Memory) -> None:
    upside_down = memory_text.parse(json.dumps(dict(reversed(json.loads(memory_text.render(kept)).items()))))
    assert upside_down is not None
    assert memory_text.render(upside_down) == memory_text.render(kept)


def test_an_empty_memory_is_short() -> None:
    assert memory_text.render(Memory()) == "{}"


def test_what_a_later_version_adds_is_ignored() -> None:
    assert memory_text.parse('{"added_at": 1.0, "colour": ["red"]}') == Memory(added_at=1.0)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "null",
        "[]",
        '"text"',
        "{",
        '{"left": []}',
        '{"left": {"j-worker-0": 1}}',
        '{"left": {"j-worker-0": {"at": 1}}}',
        '{"added_at": "now"}',
        '{"added_at": null}',
        '{"added_at": NaN}',
        '{"added_at": Infinity}',
        '{"added_at": 1e999}',
        '{"added_at": 1e300}',
        '{"added_at": -1}',
        '{"left": {"j-worker-0": {"pod": "u", "at": -1e300}}}',
        '{"scale": {"before": -1, "after": 1, "at": 1}}',
        '{"replaced": {"j-worker-0": {"count": 0, "at": 1, "uid": "u"}}}',
        '{"hosts": {"j-worker-0": 1}}',
        '{"hosts": {"j-worker-0": {"incarnation": 1}}}',
        '{"hosts": {"j-worker-0": {"pod": "a", "incarnation": -1}}}',
        '{"hosts": {"j-worker-0": {"pod": "a", "incarnation": 1000000000}}}',
        '{"replaced": {"j-worker-0": {"count": 1.5, "at": 1, "uid": "u"}}}',
        '{"launchers": {"count": ' + "9" * 5000 + ', "at": 1, "uid": "u"}}',
        '{"launchers": {"count": ' + "9" * 40 + ', "at": 1, "uid": "u"}}',
        '{"colour": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "\ud800",
    ],
    ids=lambda text: str(text).encode("unicode_escape").decode()[:30],
)
def test_hostile_text_is_no_memory(text: str | None) -> None:
    assert memory_text.parse(text) is None


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_without_an_error(text: str) -> None:
    memory_text.parse(text)

"""The memory in an annotation: the same comes back, that of large jobs fits, and nothing hostile gets in."""

import base64
import json
import zlib
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model.bounds import LARGEST_MEMORY, MOST_INT32, MOST_WORKERS
from mpijob_elastic.model.memory import (
    COMPRESSED,
    PLAIN,
    Host,
    Left,
    Memory,
    SizeChange,
    Tries,
    parse_memory,
    render_memory,
)
from tests.examples import share

TIMES = st.floats(0.0, 1e10)
COUNTS = st.integers(1, 1000)
SIZES = st.integers(0, MOST_INT32)  # whatever the operator can read
PODS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TRIES = st.builds(Tries, count=COUNTS, at=TIMES, uid=PODS)
MEMORIES = st.builds(
    Memory,
    left=st.dictionaries(PODS, st.builds(Left, pod=PODS, at=TIMES, known_at=TIMES)),
    added_at=TIMES,
    removed_at=TIMES,
    dropped_at=TIMES,
    scale=st.none() | st.builds(SizeChange, before=SIZES, after=SIZES, at=TIMES),
    replaced=st.dictionaries(PODS, TRIES),
    hosts=st.dictionaries(PODS, st.builds(Host, pod=PODS, incarnation=st.integers(0, 10**8))),
    renamed=st.dictionaries(PODS, TRIES),
    moved=st.dictionaries(PODS, TRIES),
    launchers=st.none() | TRIES,
)


@given(MEMORIES)
def test_what_is_written_is_read_back_and_the_same_memory_gives_the_same_text(kept: Memory) -> None:
    assert parse_memory(render_memory(kept)) == kept
    upside_down = parse_memory(json.dumps(dict(reversed(json.loads(render_memory(kept)).items()))))
    assert render_memory(upside_down or Memory()) == render_memory(kept)


def test_what_somebody_else_remembers_is_kept_as_it_is() -> None:
    assert parse_memory('{"added_at": 1.0, "colour": ["red"]}') == Memory(
        added_at=1.0, own={"colour": b'["red"]'}
    )
    assert render_memory(Memory()) == "{}"
    small = Memory(left={"j-worker-1": Left(pod="u", at=1.0)})
    assert json.loads(render_memory(small)) == {"left": {"j-worker-1": {"pod": "u", "at": 1.0}}}
    drained = Memory(hosts={"j-worker-1": Host(pod="")})
    assert json.loads(render_memory(drained)) == {"hosts": {"j-worker-1": {"pod": ""}}}


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "null", "[]", "{", '{"left": []}', "\ud800"),
        *(
            f'{{"added_at": {value}}}'
            for value in ('"now"', "null", "NaN", "Infinity", "1e999", "1e300", "-1")
        ),
        '{"left": {"j-worker-0": {"at": 1}}}',
        '{"left": {"j-worker-0": {"pod": "u", "at": -1e300}}}',
        '{"scale": {"before": -1, "after": 1, "at": 1}}',
        '{"replaced": {"j-worker-0": {"count": 0, "at": 1, "uid": "u"}}}',
        '{"hosts": {"j-worker-0": {"pod": "a", "incarnation": -1}}}',
        '{"hosts": {"j-worker-0": {"pod": "a", "incarnation": 1000000000}}}',
        '{"replaced": {"j-worker-0": {"count": 1.5, "at": 1, "uid": "u"}}}',
        '{"launchers": {"count": ' + "9" * 5000 + ', "at": 1, "uid": "u"}}',
        '{"launchers": {"count": ' + "9" * 40 + ', "at": 1, "uid": "u"}}',
        '{"colour": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=lambda text: str(text).encode("unicode_escape").decode()[:30],
)
def test_hostile_text_is_no_memory(text: str | None) -> None:
    assert parse_memory(text) is None


@given(
    st.text()
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse_memory(text)


# All annotations of an object may have 256 KiB.
WANTED = 240 * 1024
# A pod's name is a label's value too: 63 characters.
JOB = "j" * (63 - len("-worker-9999"))
MOST = 10_000
# Lists follow one another after 3 s at the earliest, and pods that are gone are forgotten after 600
# s.
MOST_TIMES = 200
DAY = 86_400.0
SEEDS = st.integers(0, 2**32)


def everybody_left(seed: int, *, waves: int) -> Memory:
    """10,000 workers left at so many different times of a day; 2,000 host names are in use."""
    random = Random(seed)
    times = [round(1_763_712_345 + DAY * random.random(), 3) for _ in range(waves)]
    known = [round(time + 60 * random.random(), 3) for time in times]
    left, hosts = {}, {}
    for index in range(MOST):
        wave, name, uid = (
            random.randrange(waves),
            f"{JOB}-worker-{index}",
            f"{random.getrandbits(32):08x}",
        )
        left[name] = Left(pod=uid, at=times[wave], known_at=known[wave])
        if index < 2000:
            hosts[name] = Host(pod=f"{random.getrandbits(32):08x}", incarnation=random.randrange(5))
    return Memory(left=left, added_at=1.5, removed_at=max(times), hosts=hosts, script="abc")


@share(0.03)
@given(SEEDS, st.integers(1, MOST_TIMES))
def test_10000_leaving_workers_and_2000_host_names_fit_and_come_back(seed: int, waves: int) -> None:
    kept = everybody_left(seed, waves=waves)
    text = render_memory(kept)
    assert len(text) < WANTED
    assert parse_memory(text) == kept


@given(MEMORIES)
def test_a_compressed_memory_comes_back(kept: Memory) -> None:
    kept = msgspec.structs.replace(kept, script="x" * PLAIN)
    text = render_memory(kept)
    assert text.startswith(COMPRESSED)
    assert parse_memory(text) == kept


def compressed(plain: bytes) -> str:
    return COMPRESSED + base64.b64encode(zlib.compress(plain)).decode()


def test_the_hostile_texts_are_wrong_in_one_place_only() -> None:
    assert parse_memory(compressed(b'{"added_at": 1.0}')) == Memory(added_at=1.0)
    assert parse_memory(compressed(b'{"added_at": 1.0}'.ljust(LARGEST_MEMORY))) == Memory(
        added_at=1.0
    )


@pytest.mark.parametrize(
    "text",
    [
        COMPRESSED,
        compressed(b"\xff"),
        compressed(b'{"added_at": -1}'),
        compressed(b"[" * 100_000 + b"]" * 100_000),
        compressed(b'{"added_at": 1.0}')[:-4],
        compressed(b'{"added_at": 1.0}').replace(COMPRESSED, f"{COMPRESSED} "),
        COMPRESSED + "é" * 8,
        COMPRESSED + "!" * 8,
        COMPRESSED + base64.b64encode(b'{"added_at": 1.0}').decode(),
        compressed(b'{"added_at": 1.0}'.ljust(LARGEST_MEMORY + 1)),
    ],
    ids=lambda text: text[:30],
)
def test_a_broken_value_is_no_memory(text: str) -> None:
    assert parse_memory(text) is None


def test_a_bomb_is_no_memory() -> None:
    assert parse_memory(compressed(b" " * 2**27)) is None


@pytest.mark.parametrize("part", ["left", "hosts", "replaced", "moved", "renamed", "elders"])
def test_a_memory_of_more_than_all_workers_is_not_ours(part: str) -> None:
    entry: dict[str, object] = {"pod": "", "at": 1, "count": 1, "uid": ""}
    for size in (MOST_WORKERS, MOST_WORKERS + 1):
        found = [""] * size if part == "elders" else dict.fromkeys(map(str, range(size)), entry)
        memory = parse_memory(compressed(json.dumps({part: found}, separators=(",", ":")).encode()))
        assert (memory is not None) is (size == MOST_WORKERS)

"""The memory of large jobs fits into an annotation, and comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpijob_elastic.model import memory_text
from mpijob_elastic.model.memory import Host, Left, Memory, Tries

# What Kubernetes allows all annotations of an object together, keys and values.
ALLOWED = 256 * 1024
# A pod's name is a label's value in its turn (the host name): 63 characters.
JOB = "j" * (63 - len("-worker-9999"))
MOST = 5000
SEEDS = st.integers(0, 2**32)


def pod(index: int) -> str:
    return f"{JOB}-worker-{index}"


def uid(index: int, seed: int) -> str:
    """A uid with as many random bits as a real one."""
    bits = f"{(index + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 * (seed * 2 + 1) % 2**128:032x}"
    return "-".join([bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]])


def everybody_left(seed: int, *, waves: int, uids: bool = True, tried: int = 0, names: int = 2000) -> Memory:
    """5,000 workers that left at so many different times, of which the first ones were replaced too."""
    times = [1_763_712_345.1234567 + 3.0 * (index * waves // MOST) for index in range(MOST)]
    left = {
        pod(index): Left(uid=uid(index, seed) if uids else "", at=at, known_at=at + 0.7654321)
        for index, at in enumerate(times)
    }
    replaced = {pod(index): Tries(count=1, at=times[index], uid=uid(index, seed)) for index in range(tried)}
    hosts = {pod(index): Host(pod=f"{index * 7919:08x}") for index in range(names)}
    return Memory(left=left, added_at=1.5, removed_at=times[-1], hosts=hosts, replaced=replaced, script="abc")


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(1, 300), st.booleans(), st.sampled_from([0, 1, MOST]))
def test_what_5000_workers_leave_fits_and_comes_back(seed: int, waves: int, uids: bool, tried: int) -> None:
    kept = everybody_left(seed, waves=waves, uids=uids, tried=tried if uids else 0)
    text = memory_text.render(kept)
    assert memory_text.parse(text) == kept
    assert len(text.encode()) < ALLOWED - 4096


@settings(max_examples=3, deadline=None)
@given(SEEDS)
def test_whatever_does_not_fit_is_less_exact_but_nobody_who_left_is_forgotten(seed: int) -> None:
    """Each left at another time, and was replaced several times at others."""
    kept = everybody_left(seed, waves=MOST)
    tries = {pod(index): Tries(count=index % 5 + 1, at=0.1 + index, uid=uid(index, seed + 1)) for index in range(MOST)}
    kept = msgspec.structs.replace(kept, replaced=tries, moved=tries, renamed=tries)
    text = memory_text.render(kept)
    assert len(text.encode()) < ALLOWED - 4096
    back = memory_text.parse(text)
    assert back is not None
    assert back.left.keys() == kept.left.keys()
    for name, left in kept.left.items():
        assert back.left[name].uid == left.uid
        assert left.at <= back.left[name].at <= kept.removed_at
        assert back.left[name].known_at >= left.known_at
    assert memory_text.render(back) == text


def test_who_has_yet_to_be_known_is_not_held_to_be() -> None:
    many = everybody_left(1, waves=MOST)
    last = many.left[pod(MOST - 1)]
    unknown = {**many.left, pod(MOST - 1): Left(uid=last.uid, at=last.at)}
    back = memory_text.parse(memory_text.render(msgspec.structs.replace(many, left=unknown)))
    assert back is not None
    assert back.left[pod(MOST - 1)].known_at == 0.0


def test_a_small_memory_can_be_read_by_people() -> None:
    small = Memory(left={"j-worker-1": Left(uid="u", at=1.0)})
    assert json.loads(memory_text.render(small)) == {"left": {"j-worker-1": {"uid": "u", "at": 1.0}}}


TEXTS = st.text("abc-0123", max_size=3)
NAMES = st.one_of(
    st.builds(lambda job, index: f"{job}-worker-{index}", st.sampled_from("jk"), st.integers(0, 10**9)), TEXTS
)
UIDS = st.one_of(st.uuids().map(str), TEXTS, st.uuids().map(lambda one: str(one).upper()))
TIMES = st.sampled_from([0.0, 1.0, 1_763_712_345.1234567, 1e11])
TRIES = st.dictionaries(NAMES, st.builds(Tries, count=st.integers(1, 10**9), at=TIMES, uid=UIDS))
ODD = st.builds(
    Memory,
    left=st.dictionaries(NAMES, st.builds(Left, uid=UIDS, at=TIMES, known_at=TIMES)),
    hosts=st.dictionaries(NAMES, st.builds(Host, pod=UIDS, incarnation=st.integers(0, 10**8))),
    replaced=TRIES,
    moved=TRIES,
    renamed=TRIES,
    # So long that it is packed.
    script=st.just("x" * memory_text.PLAIN),
)


@settings(deadline=None)
@given(ODD)
def test_names_and_uids_of_any_form_come_back(kept: Memory) -> None:
    assert memory_text.parse(memory_text.render(kept)) == kept


def packed(field: str = "left", **changes: Any) -> str:
    group: Mapping[str, Any] = {"pods": "0-1", "numbers": [1.0, 1.0], "texts": "ab", **changes}
    return json.dumps({"before": "j-worker-", "packed": {field: [group]}})


def test_the_hostile_texts_are_wrong_in_one_place_only() -> None:
    read = memory_text.parse(packed())
    assert read is not None
    assert read.left == {
        "j-worker-0": Left(uid="a", at=1.0, known_at=1.0),
        "j-worker-1": Left(uid="b", at=1.0, known_at=1.0),
    }


@pytest.mark.parametrize(
    "text",
    [
        packed(pods=""),
        packed(pods="1-0"),
        packed(pods="x"),
        packed(pods="0-999999999"),
        packed(pods=",".join(["0-99999"] * 3)),
        packed(pods="0-2"),
        packed(texts="abc"),
        packed(uids="short"),
        packed(uids="é" * 44),
        packed(uids="!" * 44),
        packed(numbers=[1.0]),
        packed(numbers=[1.0, -1.0]),
        packed(numbers=[1.0, 1e300]),
        packed(numbers=[1.0, None]),
        packed("replaced", numbers=[1.0, 0.0]),
        packed("hosts", numbers=[1e10]),
        packed("hosts", numbers=[1.0, 1.0]),
    ],
)
def test_hostile_groups_are_no_memory(text: str) -> None:
    assert memory_text.parse(text) is None


def test_what_a_later_version_packs_is_ignored() -> None:
    assert memory_text.parse(packed("colours")) == Memory()

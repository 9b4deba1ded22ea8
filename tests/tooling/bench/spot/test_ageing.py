"""A jump of the clock makes what is remembered older, and nothing else of it different."""

from __future__ import annotations

import msgspec

from bench.spot.ageing import older
from mpijob_elastic.model.memory import Left, Memory, Scale, Tries, pod_fingerprint

NOW = 1.7e9


def a_memory(now: float) -> Memory:
    return Memory(
        left={"train-worker-1": Left(pod=pod_fingerprint("u"), at=now - 10, known_at=now - 9)},
        added_at=now - 3,
        moved={"train-worker-1": Tries(count=2, at=now - 10, uid="u")},
        scale=Scale(before=1, after=2, at=now - 20),
        script="s",
    )


def aged(memory: Memory, seconds: float) -> Memory:
    return msgspec.convert(older(msgspec.to_builtins(memory), seconds=seconds), Memory)


def test_every_time_is_moved_back_and_nothing_else() -> None:
    assert aged(a_memory(NOW), 3600) == a_memory(NOW - 3600)


def test_a_time_that_is_unset_stays_unset() -> None:
    empty = {"added_at": 0.0, "left": {"a": {"uid": "u", "at": NOW, "known_at": 0.0}}, "at": "a word", "format": 2e9}
    expected = {**empty, "left": {"a": {"uid": "u", "at": NOW - 60, "known_at": 0.0}}}
    assert older(empty, seconds=60) == expected

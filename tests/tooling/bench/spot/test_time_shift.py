"""A jump of the clock moves the times of the memory, and nothing else."""

from bench.spot.time_shift import shifted, shifted_memory
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


def test_every_time_is_moved_back_and_nothing_else() -> None:
    assert shifted_memory(a_memory(NOW), seconds=3600) == a_memory(NOW - 3600)


def test_a_time_that_is_unset_stays_unset() -> None:
    empty = {"added_at": 0.0, "left": {"a": {"uid": "u", "at": NOW, "known_at": 0.0}}, "at": "a word", "format": 2e9}
    expected = {**empty, "left": {"a": {"uid": "u", "at": NOW - 60, "known_at": 0.0}}}
    assert shifted(empty, seconds=60) == expected

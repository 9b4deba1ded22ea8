"""Whose a line of the log may be."""

import pytest

from mpijob_elastic.explain.spawned_ranks import Lives, Spawn, Spawned, printed_rank


def spawn(rank: int, pod: str, *, at: float) -> Spawn:
    return Spawn(pid=int(at), rank=rank, pod=pod, started_at=at)


def looked(at: float, *spawns: Spawn) -> Spawned:
    return Spawned(at=at, spawns=frozenset(spawns))


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        (b"[0]<stdout>:loss 0.5", 0),
        (b"[12]<stderr>:\xff", 12),
        (b"Thu Nov 26 13:07:30 2026[3]<stdout>:loss", 3),
        (b"Sun Nov  1 13:07:30 2026[3]<stdout>:loss", 3),
        (b"[1,7]<stdout>:of mpirun --tag-output", 7),
        (b"[2026-11-26 13:07:30.1: W stall_inspector.cc:107] One or more", None),
        (b"Process 0 exit with status code 1.", None),
        (b"text [0]<stdout>:x", None),
        (b"[" + b"9" * 5000 + b"]<stdout>:x", None),
        (b"", None),
    ],
)
def test_horovods_prefix_is_read(line: bytes, rank: int | None) -> None:
    assert printed_rank(line) == rank


def test_a_line_is_of_everybody_that_had_the_rank_at_its_time() -> None:
    lives = Lives()
    first, second, newcomer = spawn(0, "a", at=10), spawn(1, "b", at=10), spawn(0, "c", at=50)
    lives.add(looked(20, first, second))
    lives.add(looked(60, first, second, newcomer))
    assert lives.pods(0, at=5) == []
    assert lives.pods(0, at=30) == ["a"]
    assert lives.pods(0, at=55) == ["a", "c"]
    lives.add(looked(70, second, newcomer))
    assert lives.pods(0, at=65) == ["a", "c"]  # it may have been there still
    assert lives.pods(0, at=75) == ["c"]
    assert lives.pods(0, at=30) == ["a"]
    assert lives.has("a")
    assert not lives.has("d")


def test_ranks_are_those_of_the_start_where_all_were_started_together() -> None:
    assert looked(20, spawn(0, "a", at=10), spawn(1, "b", at=11)).together
    assert not looked(90, spawn(0, "a", at=10), spawn(1, "b", at=80)).together
    assert looked(20).together

"""Whose a line of the log may be; Horovod's own words on missing ranks, and the workers that they mean."""

import pytest

from mpijob_elastic.diagnosis.facts import Finding, Level
from mpijob_elastic.diagnosis.logged_ranks import (
    Lives,
    Spawn,
    Spawned,
    Stall,
    Stopped,
    printed_rank,
    stopped,
)
from mpijob_elastic.diagnosis.logged_ranks import stall as read
from tests.builders import NOW, but, job, worker
from tests.product.diagnosis.said import STALLED, of_job

STALL = Stall(
    seconds=60,
    missing={1: "allreduce.conv1, allreduce.conv2, allreduce.fc ...", 2: "allreduce.conv1"},
)


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


def test_the_last_block_is_read() -> None:
    assert read(STALLED.split(b"\n")) == STALL
    earlier = STALLED.replace(b"1: [", b"5: [")
    assert (
        read(
            [
                *earlier.split(b"\n"),
                b"[0]<stdout>:step 4",
                *STALLED.split(b"\n"),
                b"[0]<stdout>:x",
                b"[0]<stdout>:3: [y]",
            ]
        )
        == STALL
    )


@pytest.mark.parametrize(
    "text", [b"", b"[0]<stdout>:1: [2, 3]", b"Missing ranks:\n1: [allreduce]", STALLED[:300]]
)
def test_other_lines_tell_of_no_stall(text: bytes) -> None:
    assert read(text.split(b"\n")) is None


def spawned(*pods: tuple[int, str], later: float = 0.0) -> Spawned:
    starts = (NOW - 60.0, *(NOW - 60.0 + later for _ in pods[1:]))
    found = (
        Spawn(pid=7, rank=rank, pod=pod, started_at=at)
        for (rank, pod), at in zip(pods, starts, strict=True)
    )
    return Spawned(at=NOW, spawns=frozenset(found))


def missing(known: Spawned | None) -> Finding:
    view = job(workers=(worker(0), but(worker(1), node="gpu-7"), worker(2)))
    return of_job(view, stall=Stall(seconds=60, missing={1: "allreduce.fc"}), spawned=known)[
        "missing-ranks"
    ]


def test_worker_and_node_of_a_missing_rank_are_named() -> None:
    found = missing(spawned((0, "j-worker-0"), (1, "j-worker-1")))
    assert found.says == (
        "j does not go on: the other ranks have waited for more than 60 s for rank 1 (j-worker-1 on node gpu-7), which "
        "must submit allreduce.fc (from the launcher's log)"
    )
    assert found.level is Level.WRONG
    assert found.next_step == "mpijob-elastic logs j -n default --tail 20 --worker j-worker-1"


def test_what_cannot_be_told_of_it_is_said() -> None:
    dealt_again = missing(spawned((0, "j-worker-0"), (1, "j-worker-1"), later=30.0))
    assert (
        "rank 1 (j-worker-1 on node gpu-7, if ranks are as they were at the start of each)"
        in dealt_again.says
    )
    both = missing(spawned((1, "j-worker-1"), (1, "j-worker-2"), later=30.0))
    assert "rank 1 (j-worker-1 on node gpu-7 or j-worker-2 on node " in both.says
    for known in (None, spawned((0, "j-worker-0"))):
        found = missing(known)
        assert "for rank 1 (its worker is not known)," in found.says
        assert found.next_step == "mpijob-elastic logs j -n default --tail 20"


STOP = (
    b"2026-11-26T13:07:30.123456789Z ERROR:root:reset count 3 has exceeded limit 2 -> stop running"
)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param(
            [STOP, b"2026-11-26T13:07:31Z Process 0 exit with status code 143."],
            "ERROR:root:reset count 3 has exceeded limit 2 -> stop running",
            id="a reset limit",
        ),
        pytest.param(
            [b"2026-11-26T13:07:30.5Z INFO:root:success count == 1 -> stop running\r"],
            "INFO:root:success count == 1 -> stop running",
            id="a rank that ended with 0",
        ),
        pytest.param([], "", id="no line"),
        pytest.param([STOP.partition(b" ")[2]], "", id="no time"),
        pytest.param(
            [b"2026-11-26T13:07:30Z [0]<stdout>:x -> stop running"], "", id="printed by a rank"
        ),
        pytest.param([b"2026-99-26T13:07:30Z x -> stop running"], "", id="a time of no calendar"),
        pytest.param([b"2026-11-26T13:07:30Z x -> stop running later"], "", id="other words"),
    ],
)
def test_the_last_words_of_horovodrun_are_read(lines: list[bytes], says: str) -> None:
    found = stopped(lines)
    assert (found.says if found else "") == says
    assert found is None or found.at == 1795698450.0


@pytest.mark.parametrize(("ago", "is_told"), [(20.0, False), (40.0, True)])
def test_a_launcher_that_runs_on_after_horovodrun_is_a_finding(ago: float, is_told: bool) -> None:
    found = of_job(job(), stopped=Stopped(at=NOW - ago, says="reset count -> stop running"))
    assert ("driver-stopped" in found) is is_told
    if is_told:
        assert found["driver-stopped"].level is Level.WRONG
        assert "horovodrun stopped 40s ago (reset count -> stop running)" in (
            found["driver-stopped"].says
        )

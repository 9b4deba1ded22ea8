"""Reading what elastic.sh and the ranks of an MPI program said."""

import json
from datetime import UTC, datetime

from lab.training.mpi.log import parse

AT = datetime(2026, 11, 29, 15, 0, tzinfo=UTC).timestamp()


def line(second: int, said: str) -> str:
    return f"2026-11-29T15:00:{second:02}.250000000Z {said}\n"


def step(number: int, *, size: int, second: int) -> str:
    about = {"event": "step", "time": AT + second, "host": "w0", "rank": 0, "size": size}
    return line(second, json.dumps({**about, "step": number, "hosts": ["w0"] * size}))


TEXT = "".join(
    [
        line(1, "15:00:01 elastic.sh: start 1 on 2 slots (list 2): w0 w1"),
        line(1, "+ /opt/kube/kubectl exec w0 -- /bin/sh -c orted"),
        step(1, size=2, second=2),
        line(3, "15:00:03 elastic.sh: list 3 has 1 slots: SIGUSR1, at most 50 s"),
        line(4, "15:00:04 elastic.sh: start 1 ended with 0 after 3 s"),
        # A rank's words may stand before those of the driver.
        line(5, "Killed15:00:05 elastic.sh: start 2 ended with 137 after 1 s"),
        step(2, size=1, second=6),
    ]
)


def test_the_driver_and_the_ranks_are_told_apart() -> None:
    log = parse(TEXT)
    assert [one.step for one in log.steps] == [1, 2]
    assert log.codes == [0, 137]
    assert log.ended_at == AT + 4.25
    signal = log.said("SIGUSR1")
    assert signal is not None
    assert signal.at == AT + 3.25


def test_what_was_said_before_a_time_is_left_out() -> None:
    log = parse(TEXT).since(AT + 4.5)
    assert [one.step for one in log.steps] == [2]
    assert log.codes == [137]
    assert log.said("SIGUSR1") is None

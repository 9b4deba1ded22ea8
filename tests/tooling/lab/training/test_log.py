"""Reading a launcher's log, and when training recovered from the loss of a rank."""

import json

import pytest

from lab.training import log as training
from lab.training.log import Log, Recovery, Told, parse, recovery

NOISE = "+ POD_NAME=train-worker-0\n[0]<stderr>:+ shift\nINFO:root:start worker process: train-worker-0[0]\n"


def step(number: int, *hosts: str, at: float) -> str:
    told = {
        "event": "step",
        "time": at,
        "host": hosts[0],
        "rank": 0,
        "size": len(hosts),
        "step": number,
    }
    return "[0]<stdout>:" + json.dumps({**told, "epoch": 0, "hosts": hosts, "loss": 0.5})


def end(host: str, *, reached: bool) -> str:
    told = {
        "event": "end",
        "time": 99.0,
        "host": host,
        "rank": 0,
        "size": 1,
        "step": 9,
        "loss": 0.3,
    }
    return "[0]<stdout>:" + json.dumps({**told, "reached": reached})


def log(*lines: str) -> Log:
    return parse(NOISE + "\n".join(lines))


def good(*lines: str) -> Log:
    return log(*lines, end("a", reached=True))


def test_lines_of_the_script_are_read_wherever_horovodrun_puts_them() -> None:
    stamped = "Sat Nov 21 12:00:00 2026" + step(7, "a", "b", at=3.5)
    (read,) = log(stamped).steps
    assert (read.step, read.hosts, read.size, read.time) == (7, ("a", "b"), 2, 3.5)
    broken = step(7, "a", at=3.5).replace("<stdout>:", "<stdout>:[")
    assert [
        one.step for one in log(broken, "[0]<stdout>:2026-11-21 13:23:44: I operations.cc").steps
    ] == [7]
    assert [one.step for one in log(broken + "2026-11-21 13:41:38: I operations.cc").steps] == [7]


def test_a_phase_is_who_trains() -> None:
    steps = log(
        step(1, "a", "b", at=1),
        step(2, "a", "b", at=2),
        step(3, "a", at=4),
        step(4, "a", "b", at=7),
    ).steps
    assert [
        (one.hosts, one.size, one.first, one.last, one.steps) for one in training.phases(steps)
    ] == [
        (("a", "b"), 2, 1, 2, 2),
        (("a",), 1, 4, 4, 1),
        (("a", "b"), 2, 7, 7, 1),
    ]


def test_the_longest_pause_is_between_any_two_steps() -> None:
    assert (
        training.longest_pause(
            log(step(1, "a", at=1), step(2, "a", at=2), step(3, "b", at=5.5)).steps
        )
        == 3.5
    )
    assert training.longest_pause(log(step(1, "a", at=1)).steps) == 0


def test_the_first_step_of_a_size_after_an_edit_is_found() -> None:
    steps = log(
        step(1, "a", at=1), step(2, "a", "b", at=2), step(3, "a", at=3), step(4, "a", at=4)
    ).steps
    found = training.first_with(steps, size=1, since=1.5)
    assert found is not None
    assert found.step == 3
    assert training.first_with(steps, size=2, since=2.5) is None


@pytest.mark.parametrize(
    ("numbers", "lost"), [((1, 2, 3), 0), ((9, 10, 8), 3), ((40, 1, 2), 40), ((1, 2, 2, 3), 1)]
)
def test_steps_done_again_are_counted(numbers: tuple[int, ...], lost: int) -> None:
    steps = log(*(step(number, "a", at=number) for number in numbers)).steps
    assert training.lost_steps(steps) == lost


def test_a_good_log_has_no_problems() -> None:
    # A rank whose host has left the list ends by abort(), which is no failure.
    left = "Process 1 exit with status code 134."
    assert training.problems(good(step(1, "a", "b", at=1), left, step(2, "a", at=2))) == []


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["Process 2 exit with status code 137."], "a rank was killed (exit code 137)"),
        (
            ["INFO:root:blacklist failing host: train-worker-1"],
            "Horovod blacklisted train-worker-1",
        ),
        (["WARNING:root:Blacklisting host train-worker-1"], "Horovod blacklisted train-worker-1"),
        ([step(8, "a", at=1), step(1, "a", at=2)], "8 steps were lost and done again"),
    ],
)
def test_what_must_not_happen_is_told(lines: list[str], problem: str) -> None:
    assert training.problems(good(*lines)) == [problem]
    assert training.harm(log(*lines)) == [problem]


def test_an_end_without_the_loss_or_without_a_word_is_told() -> None:
    assert training.problems(log(end("b", reached=False))) == [
        "the rank in b ended with a loss of 0.3"
    ]
    assert training.problems(log(step(1, "a", at=1))) == ["no rank said that it has ended"]


def started(at: float, host: str) -> Told:
    return Told(event="start", time=at, host=host, rank=0, size=3)


def stepped(at: float, size: int) -> Told:
    return Told(event="step", time=at, host="a", rank=0, size=size)


AGAIN = (started(15, "b"), stepped(16, 3))


@pytest.mark.parametrize(
    ("told", "found"),
    [
        pytest.param(
            [started(1, "b"), stepped(9, 3), stepped(10.1, 3), stepped(12, 2), *AGAIN],
            Recovery(went_on=2, full=6),
            id="steps that are told late are not the recovery",
        ),
        pytest.param(
            [stepped(10.1, 3), *AGAIN],
            Recovery(went_on=6, full=6),
            id="it goes on at full size only",
        ),
        pytest.param([started(1, "b")], None, id="nobody trains"),
        pytest.param([started(1, "b"), stepped(12, 2)], None, id="fewer train"),
        pytest.param(
            [stepped(12, 2), started(15, "c"), stepped(16, 3)], None, id="another rank has come"
        ),
        pytest.param([stepped(12, 2), started(15, "b")], None, id="the new rank has made no step"),
    ],
)
def test_recovery_from_the_loss_of_a_rank_at_10_s(told: list[Told], found: Recovery | None) -> None:
    starts, steps = (
        tuple(one for one in told if one.event == event) for event in ("start", "step")
    )
    whole = Log(starts=starts, steps=steps, ends=(), exits=(), blacklisted=(), launched=())
    assert recovery(whole, "b", size=3, since=10.0) == found


def test_hosts_in_which_the_driver_started_ranks_are_read_in_order() -> None:
    more = "INFO:root:start worker process: train-worker-1.r2[0]"
    assert log(more, step(1, "a", at=1)).launched == ("train-worker-0", "train-worker-1.r2")

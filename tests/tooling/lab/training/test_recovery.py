"""The recovery of training from the loss of a rank."""

from lab.training.log import Log, Told
from lab.training.recovery import Recovery, recovery

LOST = 10.0


def start(at: float, host: str) -> Told:
    return Told(event="start", time=at, host=host, rank=0, size=3)


def step(at: float, size: int) -> Told:
    return Told(event="step", time=at, host="a", rank=0, size=size)


def log(*told: Told) -> Log:
    starts, steps = (tuple(one for one in told if one.event == event) for event in ("start", "step"))
    return Log(starts=starts, steps=steps, ends=(), exits=(), blacklisted=())


def test_steps_told_late_are_not_the_recovery() -> None:
    whole = log(start(1, "b"), step(9, 3), step(10.1, 3), step(12, 2), start(15, "b"), step(16, 3))
    assert recovery(whole, "b", size=3, since=LOST) == Recovery(went_on=2, full=6)


def test_training_may_go_on_at_full_size_only() -> None:
    assert recovery(log(step(10.1, 3), start(15, "b"), step(16, 3)), "b", size=3, since=LOST) == Recovery(
        went_on=6, full=6
    )


def test_a_job_that_has_not_recovered_yet() -> None:
    for told in ((), (step(12, 2),), (step(12, 2), start(15, "c"), step(16, 3)), (step(12, 2), start(15, "b"))):
        assert recovery(log(start(1, "b"), *told), "b", size=3, since=LOST) is None

"""Which execs have nothing at their other end."""

from __future__ import annotations

import pytest

from mpijob_elastic.decide import clock, frozen
from mpijob_elastic.model.execs import Exec
from tests.builders import LONG_AGO, failed, job, worker


def running(index: int, *, after: float = 0.0) -> Exec:
    """One that was started so many seconds after the pods of the job were created."""
    return Exec(pid=41, pod=f"j-worker-{index}", started_at=LONG_AGO + after)


@pytest.mark.parametrize(
    ("one", "cut_off"),
    [
        (running(0), False),
        (running(0, after=100.0), False),
        (running(0, after=-clock.SKEW), False),
        (running(0, after=-clock.SKEW - 1.0), True),
        (running(1, after=100.0), True),
        (running(2, after=100.0), False),
        (running(3, after=100.0), True),
    ],
)
def test_the_pod_is_gone_has_ended_or_is_another(one: Exec, cut_off: bool) -> None:
    view = job(workers=(worker(0), failed(1), worker(2, deleting=True)))
    assert frozen.cut_off(view, [one]) == ((one,) if cut_off else ())

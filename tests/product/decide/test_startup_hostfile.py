"""The workers for which a launcher waits before it starts."""

from typing import Any

import pytest

from mpijob_elastic.decide import derive, launcher_start
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, job, launcher, pending, pods, worker

ALL = (0, 1, 2, 3)


def waiting(least: int | None, *, running: tuple[int, ...], hostfile: tuple[int, ...] = ALL, **facts: Any) -> JobView:
    """Four workers asked for, of which these run, while the launcher waits."""
    facts = {
        "workers": tuple(worker(index) if index in running else pending(index) for index in ALL),
        "launcher": launcher(LauncherPhase.DELIVERING),
        "config": config([], hostfile=pods(*hostfile)),
        "policy": Policy(min_replicas=least),
        **facts,
    }
    return job(4, known=False, **facts)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        # The first workers by index, until others run.
        (waiting(2, running=()), (0, 1)),
        (waiting(2, running=(), hostfile=(0, 1)), (0, 1)),
        (waiting(2, running=(3,), hostfile=(0, 1)), (0, 3)),
        (waiting(2, running=(2, 3), hostfile=(0, 1)), (2, 3)),
        (waiting(2, running=(1, 2, 3), hostfile=(0, 1)), (1, 2)),
        # Who comes up later changes nothing.
        (waiting(2, running=ALL, hostfile=(2, 3)), (2, 3)),
        (waiting(2, running=(0, 2, 3), hostfile=(2, 3)), (2, 3)),
        # A longer hostfile stays while all in it run, and loses who does not.
        (waiting(2, running=ALL), ALL),
        (waiting(2, running=(0, 1, 3)), (0, 1, 3)),
        (waiting(3, running=(3,)), (0, 1, 3)),
        (waiting(2, running=(2,), workers=(worker(2),)), (0, 2)),
        # On a node that goes a worker is as good as none.
        (waiting(2, running=(), workers=(worker(0, disruption="spot-itn"), worker(1), worker(2))), (1, 2)),
        # horovodrun would wait, and give up, with fewer than its -np.
        (waiting(2, running=(3,), np_workers=3), (0, 1, 3)),
        (waiting(2, running=(3,), np_workers=4), ALL),
        (waiting(2, running=(0, 2), np_workers=1, hostfile=(0, 1)), (0, 2)),
        (waiting(None, running=(0,), np_workers=1), ALL),
        # Without a least size, or at it, all are waited for.
        (waiting(None, running=(0,)), ALL),
        (waiting(4, running=(0,), hostfile=(0,)), ALL),
        (waiting(9, running=(0,)), ALL),
        (waiting(2, running=(0, 1), replicas=1), (0,)),
        (waiting(2, running=(0, 1), replicas=0), ()),
    ],
)
def test_as_many_as_the_least_size_and_those_that_run_first(view: JobView, expected: tuple[int, ...]) -> None:
    assert view.config is not None
    assert launcher_start.awaited(derive(view, now=NOW), view.config) == pods(*expected)

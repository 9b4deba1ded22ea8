"""The pause between two changes of size that a program asks for."""

import msgspec
import pytest

from mpijob_elastic.capabilities.autoscaling import change_pause
from mpijob_elastic.model.history import Change
from tests.builders import NOW, Story, job, mpi_job


def after(view: Story, *costs: float | None) -> Story:
    """The job after changes that cost so many seconds each; None: not all ranks have started yet."""
    changes = [
        Change(
            at=NOW - 1000 + number,
            cause="user",
            before=1,
            after=2,
            listed=5.0,
            trained=None if cost is None else 5.0 + cost,
        )
        for number, cost in enumerate(costs)
    ]
    return view.configured(history=msgspec.json.encode(changes))


PAUSES = {
    "Horovod": (job(), 60.0),
    "Horovod, whatever it costs": (after(job(), 90.0), 60.0),
    "not measured yet": (mpi_job(), 300.0),
    "under way": (after(mpi_job(), None), 300.0),
    "cheap": (after(mpi_job(), 2.0), 60.0),
    "measured": (after(mpi_job(), 10.0, 20.0, 30.0), 400.0),
    "the last three count": (after(mpi_job(), 900.0, 10.0, 20.0, None, 30.0), 400.0),
    "dear": (after(mpi_job(), 600.0), 1800.0),
}


@pytest.mark.parametrize(("view", "seconds"), PAUSES.values(), ids=PAUSES)
def test_a_change_that_costs_much_comes_seldom(view: Story, seconds: float) -> None:
    assert change_pause.pause(view) == seconds


def test_a_history_that_cannot_be_read_is_none() -> None:
    assert change_pause.pause(mpi_job().configured(history=b"\xff{")) == 300.0

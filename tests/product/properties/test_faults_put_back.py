"""The histories can fail: each fault that harmed somebody, put back alone, is found by a search.

Broken policies of smaller parts are in tests/modelcheck/test_broken_policies.py. These need the
whole controller and webhook, or Horovod's driver, to be seen.
"""

import logging
from collections.abc import Callable

import pytest

from mpijob_elastic.admission.parking import ParkingAdmission
from mpijob_elastic.decide import overdue, pace, reminders, suspend
from mpijob_elastic.model.acknowledgement import Acknowledgement
from tests.doubles.horovod_driver import Driver
from tests.free_histories import FreeHistory
from tests.hindered_histories import HinderedHistory
from tests.loop_histories import LoopHistory
from tests.product.properties.courses import Course, followed
from tests.queued_histories import History, drawn, play

Fault = Callable[[pytest.MonkeyPatch], None]
# Histories within which a fault is found.
FEW = 6


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)


def no_reminder(patch: pytest.MonkeyPatch) -> None:
    """What Horovod's driver has lost is not said again."""
    patch.setattr(reminders, "due", lambda _state, *, changes_at: reminders.NO_REMINDER)
    patch.setattr(reminders, "beside_removal", lambda _state, _published: "")


def no_pause(patch: pytest.MonkeyPatch) -> None:
    """A pod that comes back is deleted at once."""
    patch.setattr(pace, "paced", lambda _state, step: step)


def any_scale(patch: pytest.MonkeyPatch) -> None:
    """The subresource scale does not ask about parked workers."""
    patch.setattr(ParkingAdmission, "scale_refusals", lambda *_: iter(()))


def no_end(patch: pytest.MonkeyPatch) -> None:
    """What is wanted back waits until its launcher could be told."""
    patch.setattr(overdue, "is_overdue", lambda _view, _wishes: False)


def an_earlier_list(patch: pytest.MonkeyPatch) -> None:
    """A worker has drained once elastic.sh has acknowledged any list."""
    patch.setattr(
        Acknowledgement, "shows_empty", lambda known, _pod, *, since: known.number >= 0 < since
    )


def no_wait(patch: pytest.MonkeyPatch) -> None:
    """The launcher of a job that stops goes at once."""
    patch.setattr(suspend, "_has_to_wait", lambda _state: False)


async def first_found(kind: type[History], *, restarts: int = 0) -> list[str]:
    for seed in range(FEW):
        jobs = 3 if seed % 2 else 1
        quota, steps = drawn(seed, jobs=jobs, kinds=kind.KINDS)
        if wrong := await play(jobs, quota, steps, kind=kind, restarts=restarts):
            return wrong
    return []


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(an_earlier_list, id="the acknowledgement of an earlier list counts"),
        pytest.param(no_wait, id="a launcher that stops does not wait for its ranks"),
    ],
)
async def test_a_history_of_elastic_sh_finds_it(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    found = await first_found(History, restarts=1)
    assert found
    assert "is killed" in found[0]


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        pytest.param(
            no_pause,
            LoopHistory,
            "was deleted",
            id="deletions without a pace",
            marks=pytest.mark.thorough,
        ),
        pytest.param(any_scale, FreeHistory, "are left by parking", id="a scale leaves nobody"),
        pytest.param(no_end, HinderedHistory, "not given back", id="quota wanted back stays"),
    ],
)
async def test_a_history_finds_it(
    fault: Fault, kind: type[History], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    found = await first_found(kind)
    assert found
    assert words in found[0]


def test_a_driver_that_loses_words_finds_a_change_that_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_reminder(monkeypatch)
    course = Course(driver=Driver(start=6.0, commit=1.0), sizes={10.0: 1, 14.0: 2})
    with pytest.raises(AssertionError):
        followed(course)
    assert course.driver.lost > 0
    assert course.reminders == 0

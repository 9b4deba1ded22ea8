"""Launchers that can never start, or never become elastic."""

from typing import Any

import pytest

from mpijob_elastic.decide import derive, launcher_start
from mpijob_elastic.decide.retries import RELAUNCHED
from mpijob_elastic.model.job import JobView, Launcher, LauncherPhase
from mpijob_elastic.model.memory import Memory, Tries
from tests.builders import NOW, config, job, launcher, pending, pods, worker

DROPPED_AT = NOW - 20
UID = "uid-of-j-launcher"


def stuck(pod: Launcher | None = None, *, dropped_at: float = DROPPED_AT, **facts: Any) -> JobView:
    """A job scaled in while its launcher waited, whose workers all run."""
    pod = pod or launcher(LauncherPhase.DELIVERING, delivering_since=NOW - 30)
    memory = facts.pop("memory", Memory(dropped_at=dropped_at))
    return job(2, launcher=pod, config=config(pods(0, 1), memory=memory), known=False, **facts)


def recreated(view: JobView, *, now: float = NOW) -> tuple[bool, float | None]:
    assert view.config is not None
    action, wake_at = launcher_start.recreate(derive(view, now=now), view.config)
    return action is not None, wake_at


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (stuck(), (True, None)),
        (stuck(dropped_at=NOW - 4), (False, NOW + 6)),
        (stuck(launcher(LauncherPhase.DELIVERING, delivering_since=NOW - 4)), (False, NOW + 6)),
        (stuck(workers=(worker(0), worker(1, ready_at=NOW - 4))), (False, NOW + 6)),
        # It waits for a worker that is still to come, rightly.
        (stuck(workers=(worker(0), pending(1))), (False, None)),
        (stuck(workers=(worker(0),)), (False, None)),
        # It was created after the hostfile had become true, as far as two clocks can tell.
        (stuck(launcher(LauncherPhase.DELIVERING, created_at=DROPPED_AT + 5)), (True, None)),
        (stuck(launcher(LauncherPhase.DELIVERING, created_at=DROPPED_AT + 6)), (False, None)),
        (stuck(dropped_at=0.0), (False, None)),
        (stuck(launcher(LauncherPhase.WAITING)), (False, None)),
        (stuck(launcher(LauncherPhase.STARTED)), (False, None)),
        (stuck(launcher(LauncherPhase.FINISHED)), (False, None)),
        (stuck(launcher(LauncherPhase.DELIVERING, deleting=True)), (False, None)),
        (stuck(elastic=False), (False, None)),
    ],
)
def test_a_launcher_that_waits_for_a_worker_scaled_away_is_recreated(
    view: JobView, expected: tuple[bool, float | None]
) -> None:
    assert recreated(view) == expected


@pytest.mark.parametrize(
    "view",
    [
        stuck(workers=(worker(0), worker(1, ready_at=NOW + 3600))),
        stuck(launcher(LauncherPhase.DELIVERING, delivering_since=NOW + 3600)),
    ],
)
def test_times_of_a_kubelet_whose_clock_is_ahead_hold_nothing_up(view: JobView) -> None:
    assert recreated(view) == (True, None)


def missed(count: int, *, at: float = NOW, uid: str = UID) -> JobView:
    """A job whose launcher came without the mount, `count` times so far."""
    pod = launcher(LauncherPhase.DELIVERING, mounts_discovery=False)
    return stuck(pod, memory=Memory(launchers=Tries(count=count, at=at, uid=uid)))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (stuck(launcher(LauncherPhase.WAITING, mounts_discovery=False)), (False, None)),
        (missed(1, uid="before"), (False, None)),
        (missed(1), (True, None)),
        (missed(2), (False, NOW + 15)),
        (missed(2, at=NOW - 15), (True, None)),
        (missed(3), (False, NOW + 30)),
        (missed(3, at=NOW + 3600), (True, None)),
    ],
    ids=["first-written-down", "another-launcher", "first", "second", "second-due", "third", "clock-set-back"],
)
def test_a_launcher_that_missed_admission_is_recreated_a_few_times(
    view: JobView, expected: tuple[bool, float | None]
) -> None:
    assert recreated(view) == expected


def test_then_it_is_left_alone_but_for_what_holds_for_every_launcher() -> None:
    start = missed(4)
    assert RELAUNCHED.is_given_up(start.memory.launchers)
    assert recreated(start) == (False, None)
    pod = launcher(LauncherPhase.DELIVERING, mounts_discovery=False)
    given_up = Memory(launchers=Tries(count=4, at=NOW, uid=UID), dropped_at=DROPPED_AT)
    assert recreated(stuck(pod, memory=given_up)) == (True, None)


@pytest.mark.parametrize(
    ("view", "counted"),
    [
        (stuck(launcher(LauncherPhase.WAITING, mounts_discovery=False)), Tries(count=1, at=NOW, uid=UID)),
        (missed(1, at=5.0, uid="before"), Tries(count=2, at=NOW, uid=UID)),
        (missed(1, at=5.0), Tries(count=1, at=5.0, uid=UID)),
        (stuck(launcher(LauncherPhase.STARTED, mounts_discovery=False)), None),
        (stuck(), None),
        (job(launcher=None), None),
        (stuck(launcher(LauncherPhase.WAITING, mounts_discovery=False), elastic=False), None),
    ],
)
def test_each_launcher_without_the_mount_counts_once(view: JobView, counted: Tries | None) -> None:
    assert launcher_start.tries(derive(view, now=NOW)) == counted

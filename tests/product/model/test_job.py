"""What a view derives from its parts."""

import pytest

from mpijob_elastic.model.job import MOST_WORKERS, LauncherPhase
from tests.builders import config, failed, job, launcher, pending, pods, worker


@pytest.mark.parametrize(
    ("phase", "running", "may_run"),
    [
        (LauncherPhase.WAITING, False, True),
        (LauncherPhase.DELIVERING, False, True),
        (LauncherPhase.STARTED, True, True),
        (LauncherPhase.FINISHED, False, False),
    ],
)
def test_when_the_driver_runs_or_may_run(phase: LauncherPhase, running: bool, may_run: bool) -> None:
    view = job(launcher=launcher(phase))
    assert (view.driver_running, view.driver_may_run) == (running, may_run)


def test_without_a_launcher_no_driver_runs() -> None:
    view = job(launcher=None)
    assert (view.driver_running, view.driver_may_run) == (False, False)


def test_surplus_workers_leave_from_the_highest_index_down() -> None:
    view = job(12, replicas=2)
    assert [worker.index for worker in view.surplus] == list(range(11, 1, -1))


def test_a_worker_takes_ranks_while_it_is_ready_and_stays() -> None:
    assert worker(0).ready
    for other in (pending(0), failed(0), worker(0, deleting=True), worker(0, ready_at=None)):
        assert not other.ready


def test_a_size_that_is_a_typing_error_does_not_become_as_many_names() -> None:
    assert len(job(replicas=2**31 - 1).wanted_names) == MOST_WORKERS


@pytest.mark.parametrize("size", [0, -1])
def test_no_worker_asked_for_is_no_name(size: int) -> None:
    assert job(replicas=size).wanted_names == ()


def test_hosts_are_what_the_script_names() -> None:
    assert job(3).published_pods == pods(0, 1, 2)
    assert job(config=None).published_pods == ()
    assert job(config=config([])).published_pods == ()

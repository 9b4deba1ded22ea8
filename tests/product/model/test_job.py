"""Properties that a view derives from its parts."""

from dataclasses import replace

import pytest

from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import LauncherPhase
from mpijob_elastic.model.policy import Policy
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


STARTED, WAITING, FINISHED = LauncherPhase.STARTED, LauncherPhase.WAITING, LauncherPhase.FINISHED
UNSEEN = Policy(delete_without_discovery=True)


@pytest.mark.parametrize(
    ("asked", "policy", "phase", "mounts", "elastic", "blind"),
    [
        (True, Policy(), None, False, True, False),
        (False, Policy(), None, False, False, False),
        # Before the start the launcher can be recreated, so the MPIJob decides.
        (True, Policy(), WAITING, False, True, False),
        (False, Policy(), WAITING, True, False, False),
        (True, Policy(), STARTED, True, True, False),
        (False, Policy(), STARTED, False, False, False),
        # An edit for the next launcher, either way.
        (True, Policy(enabled=True), STARTED, False, False, True),
        (True, Policy(), STARTED, False, False, True),
        (False, Policy(), STARTED, True, True, False),
        (False, Policy(), FINISHED, True, True, False),
        (True, Policy(), FINISHED, False, False, False),
        # These hold at once.
        (False, Policy(enabled=False), STARTED, True, False, False),
        (True, UNSEEN, STARTED, False, True, True),
        (False, UNSEEN, STARTED, False, False, False),
    ],
)
def test_the_launcher_decides_once_its_driver_has_started(
    asked: bool, policy: Policy, phase: LauncherPhase | None, mounts: bool, elastic: bool, blind: bool
) -> None:
    pod = launcher(phase, mounts_discovery=mounts, names_discovery=False) if phase else None
    view = job(spec_elastic=asked, policy=policy, launcher=pod)
    assert (view.elastic, view.blind) == (elastic, blind)


@pytest.mark.parametrize("asked", [True, False])
def test_a_command_that_names_discovery_is_elastic_and_blind_without_the_file(asked: bool) -> None:
    view = job(spec_elastic=asked, launcher=launcher(mounts_discovery=False))
    assert (view.elastic, view.blind) == (True, True)
    assert not replace(view, policy=Policy(enabled=False)).elastic

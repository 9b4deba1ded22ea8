"""Jobs whose driver is elastic.sh: the next list, drains, stops and moves."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide, drain, host_list
from mpijob_elastic.decide.actions import LookAtDriver, LookIntoLauncher, ProbeWorkers, WriteConfig
from mpijob_elastic.model import elastic_script
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import JobView, list_number, parse_script
from mpijob_elastic.model.memory import Left, Memory
from mpijob_elastic.model.pod import LauncherPhase, Probe
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    NOW,
    Story,
    but,
    failed,
    job,
    launcher,
    left,
    mpi_job,
    numbered,
    pending,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import does, state

LEAVING = "j-worker-2"
READY_NOW = NOW - 1
STOPS = Policy(suspend=True)


def listing(*published: int, **facts: Any) -> Story:
    """A job of three with this list."""
    return mpi_job(**{"config": numbered(pods(*published)), "role": role(*range(8)), **facts})


def draining(*, list_: int = 8, drain_timeout: float = 60.0, **seen: Any) -> Story:
    """A job of two, from three: the third worker left 20 s ago with that list."""
    gone = Left(pod=left(LEAVING, ago=20).pod, at=NOW - 20, list=list_)
    view = mpi_job(
        2,
        workers=tuple(map(worker, range(3))),
        config=numbered(pods(0, 1), number=list_, memory=Memory(left={LEAVING: gone})),
        launcher=launcher(mounts_elastic=True, acknowledged=Acknowledgement(**seen)),
        policy=Policy(drain_timeout=drain_timeout),
    )
    return view.shown(at=NOW - 20)


def written(view: JobView) -> WriteConfig:
    return next(
        action for action in decide(view, now=NOW).actions if isinstance(action, WriteConfig)
    )


LISTS = {
    "at rest": (listing(0, 1, 2), (0, 1, 2)),
    "a worker joins": (listing(0, 1), (0, 1, 2)),
    "a removal and an addition": (
        listing(0, 3, workers=(worker(0), worker(1), worker(3)), replicas=2),
        (0, 1),
    ),
    "none is left": (listing(0, 1, 2, replicas=0), ()),
    "all have failed": (listing(0, 1, workers=(failed(0), failed(1))), ()),
    "the last is gone": (listing(0, workers=()), ()),
    "newcomers replace all": (listing(2, replicas=2), (0, 1)),
    "the first of a scale-out waits": (
        listing(0, 1, workers=(worker(0), worker(1), worker(2, ready_at=READY_NOW)), replicas=4),
        (0, 1),
    ),
    "and not longer than it may": (
        listing(0, 1, workers=(worker(0), worker(1), worker(2, ready_at=NOW - 10)), replicas=4),
        (0, 1, 2),
    ),
    "as long as the command says": (
        listing(
            *(0, 1),
            workers=(worker(0), worker(1), worker(2, ready_at=NOW - 10)),
            replicas=4,
            gather=30.0,
        ),
        (0, 1),
    ),
    "nobody waits while nothing trains": (
        listing(0, workers=(worker(0), worker(1, ready_at=NOW - 2)), replicas=4, min_np_workers=2),
        (0, 1),
    ),
    "a removal takes newcomers along": (
        listing(
            *(0, 1),
            workers=(worker(0), failed(1), worker(2, ready_at=READY_NOW), pending(3)),
            replicas=4,
        ),
        (0, 2),
    ),
}


@pytest.mark.parametrize(("view", "hosts"), LISTS.values(), ids=LISTS)
def test_the_next_list(view: Story, hosts: tuple[int, ...]) -> None:
    assert host_list.following(state(view)).hosts == pods(*hosts)


def test_no_change_waits_for_the_one_before() -> None:
    view = listing(0, 1).remembering(added_at=NOW - 0.1, removed_at=NOW - 0.1).shown(at=NOW)
    assert host_list.following(state(view)).hosts == pods(0, 1, 2)


def test_a_list_has_the_next_number_and_the_pods_of_its_hosts() -> None:
    change = written(listing(0, 1))
    found = parse_script(change.script)
    assert found is not None
    assert (found.number, found.hosts) == (8, pods(0, 1, 2))
    assert found.pods == {pod: worker(index).fingerprint for index, pod in enumerate(pods(0, 1, 2))}
    assert "# list 8 drain 60\n" in change.script


def test_the_same_list_keeps_its_number() -> None:
    assert not decide(mpi_job().shown(), now=NOW).actions


def test_another_drain_timeout_is_another_list() -> None:
    change = written(mpi_job(policy=Policy(drain_timeout=90.0)))
    assert "# list 8 drain 90\n" in change.script


def test_a_successor_of_the_same_name_is_another_list() -> None:
    change = written(mpi_job(workers=(worker(0), worker(1, uid="a later pod"), worker(2))))
    found = parse_script(change.script)
    assert found is not None
    assert found.hosts == pods(0, 1, 2)
    assert (found.number, found.pods["j-worker-1"]) == (8, worker(1, uid="a later pod").fingerprint)


@pytest.mark.parametrize("script", ["#!/bin/sh\necho mine:1\n", None])
def test_a_list_after_an_unknown_one_has_the_time_as_its_number(script: str | None) -> None:
    view = mpi_job().configured(script=script, published=None)
    assert list_number(written(view).script) == int(NOW)


# The driver of a launcher that runs may have read the list of a ConfigMap that was deleted since.
FIRST = {LauncherPhase.WAITING: 1, LauncherPhase.DELIVERING: 1, LauncherPhase.STARTED: int(NOW)}


@pytest.mark.parametrize(("phase", "number"), FIRST.items())
def test_the_number_of_the_first_list_in_a_config_map(phase: LauncherPhase, number: int) -> None:
    created = numbered(())
    view = mpi_job(config=created, launcher=launcher(phase, mounts_elastic=True)).configured(
        script=names.discover_hosts([], slots=1), published=parse_script("#!/bin/sh\n"), memory=None
    )
    assert list_number(written(view).script) == number


def test_the_list_of_a_deleted_config_map_is_written_again_in_one_step() -> None:
    """A driver that is shown an empty list ends all ranks."""
    created = numbered(())
    view = mpi_job(config=created, known=False).configured(
        script=names.discover_hosts([], slots=1), published=parse_script("#!/bin/sh\n"), memory=None
    )
    assert written(view).added == pods(0, 1, 2)


def test_a_worker_leaves_with_the_number_of_its_list() -> None:
    change = written(mpi_job(workers=tuple(map(worker, range(3))), replicas=2))
    assert change.memory.left[LEAVING].list == 8


DRAINS = {
    "never looked": (draining(), ""),
    "an earlier list": (draining(asked_at=NOW - 1, number=7), ""),
    "its list": (draining(asked_at=NOW - 1, number=8), "drained"),
    "a later list": (draining(asked_at=NOW - 1, number=12), "drained"),
    "seen before it left": (draining(asked_at=NOW - 21, number=12), ""),
    "something may run": (draining(asked_at=NOW - 1, number=8, busy=frozenset({LEAVING})), ""),
    "a list without a number": (draining(list_=8, asked_at=NOW - 1, number=0), ""),
    "the time is over": (draining(drain_timeout=19.0), "timeout"),
}


@pytest.mark.parametrize(("view", "outcome"), DRAINS.values(), ids=DRAINS)
def test_a_worker_has_drained_once_a_list_without_it_is_acknowledged(
    view: Story, outcome: str
) -> None:
    removals = drain.leave(state(view)).removals
    assert [removal.outcome for removal in removals] == [outcome] * bool(outcome)


def test_looks_into_the_launcher_and_never_into_workers() -> None:
    looks = decide(draining(), now=NOW).looks
    assert [type(look) for look in looks if not isinstance(look, ProbeWorkers)] == [LookAtDriver]
    assert not any(isinstance(look, ProbeWorkers) for look in looks)


# When the last look was made and whether it failed, and whether a look is due.
LOOKS = {
    "long ago": ({"asked_at": NOW - 3}, True),
    "just now": ({"asked_at": NOW - 1}, False),
    "of an earlier drain": ({"asked_at": NOW - 21}, True),
    "failed often": ({"asked_at": NOW - 10, "failed": 5}, False),
    "shows it": ({"asked_at": NOW - 3, "number": 8}, False),
}


@pytest.mark.parametrize(("seen", "is_due"), LOOKS.values(), ids=LOOKS)
def test_when_a_look_is_due(seen: dict[str, Any], is_due: bool) -> None:
    looks = decide(draining(**seen), now=NOW).looks
    assert any(isinstance(look, LookAtDriver) for look in looks) == is_due


def test_a_touch_is_repeated_until_the_driver_has_read_the_list() -> None:
    view = draining(asked_at=NOW - 1, number=7).but(role=role(*range(3)))
    assert does(view, but="wake") == "touch again 2"


def test_a_stop_empties_the_list_and_the_launcher_goes_last() -> None:
    view = mpi_job(policy=STOPS).shown()
    change = written(view)
    assert change.script == "#!/bin/sh\n# list 8 drain 60\n"
    gone = {pod: Left(pod=left(pod, ago=5).pod, at=NOW - 5, list=8) for pod in pods(0, 1, 2)}
    emptied = view.but(config=numbered((), number=8, memory=Memory(left=gone)))
    told = emptied.shown(at=NOW - 5).but(notices="Suspended: the job is suspended")
    assert does(told, but="wake say touch") == "nothing"
    saved = told.launched(acknowledged=Acknowledgement(asked_at=NOW - 1, number=8))
    assert does(saved, but="wake say touch") == "delete 2:drained 1:drained 0:drained"
    ends = tuple(worker(index, deleting=True) for index in range(3))
    assert does(saved.but(workers=ends), but="wake say touch") == "delete launcher, suspended"


# What is acknowledged, and whether the launcher of a job that stops goes while somebody deletes its
# last worker.
DELETED = {"the list with it": (7, ""), "the empty list": (8, "delete launcher, suspended")}


@pytest.mark.parametrize(("number", "done"), DELETED.values(), ids=DELETED)
def test_a_launcher_waits_for_ranks_in_a_worker_that_somebody_deletes(
    number: int, done: str
) -> None:
    pod = "j-worker-0"
    gone = {pod: Left(pod=left(pod, ago=5).pod, at=NOW - 5, list=8)}
    view = mpi_job(
        1,
        policy=STOPS,
        workers=(worker(0, deleting=True, ends_at=NOW + 30),),
        config=numbered((), number=8, memory=Memory(left=gone)),
    )
    told = view.shown(at=NOW - 5).but(notices="Suspended: the job is suspended")
    seen = told.launched(acknowledged=Acknowledgement(asked_at=NOW, number=number))
    assert does(seen, but="wake say touch look") == (done or "nothing")


# The driver's container has yet to start, or runs; what the ConfigMap has; and whether it is written.
SCRIPTS = {
    "missing": (LauncherPhase.WAITING, "", True),
    "of another version": (LauncherPhase.DELIVERING, "0123456789ab", False),
    "there": (LauncherPhase.WAITING, None, False),
    "missing while it runs": (LauncherPhase.STARTED, "", True),
    "another while it runs": (LauncherPhase.STARTED, "0123456789ab", False),
}


@pytest.mark.parametrize(("phase", "there", "is_written"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_launcher_gets_its_driver_before_it_starts(
    phase: LauncherPhase, there: str | None, is_written: bool
) -> None:
    view = mpi_job(launcher=launcher(phase, mounts_elastic=True))
    if there is not None:
        view = view.configured(elastic=there)
    texts = [
        action.elastic
        for action in decide(view, now=NOW).actions
        if isinstance(action, WriteConfig)
    ]
    assert texts == [elastic_script.TEXT] * is_written


def test_a_job_of_horovod_gets_none() -> None:
    view = job(launcher=launcher(LauncherPhase.WAITING))
    assert not any(isinstance(action, WriteConfig) for action in decide(view, now=NOW).actions)


def test_looks_into_workers_until_each_start_was_seen() -> None:
    seen = Probe(busy_seen=True, busy_at=NOW - 5, asked_at=NOW - 5)
    view = mpi_job().shown().pod(0, probe=seen)
    looked = [look for look in decide(view, now=NOW).looks if isinstance(look, ProbeWorkers)]
    assert [one.name for look in looked for one in look.workers] == ["j-worker-1", "j-worker-2"]
    everywhere = view.pod(1, probe=seen).pod(2, probe=seen)
    assert not decide(everywhere, now=NOW).looks


def test_each_list_is_another_occasion_to_look() -> None:
    occasions = [numbered(pods(0), number=number).occasion("j-worker-0") for number in (7, 8)]
    assert occasions == ["j-worker-0 in list 7", "j-worker-0 in list 8"]


def test_an_idle_worker_keeps_its_name() -> None:
    idle = Probe(
        busy_seen=True, busy_at=NOW - 900, asked_at=NOW - 1, idle_at=NOW - 1, idle_since=NOW - 800
    )
    busy = Probe(busy_seen=True, busy_at=NOW - 1, asked_at=NOW - 1)
    view = mpi_job().shown().pod(0, probe=busy).pod(1, probe=busy).pod(2, probe=idle)
    assert does(view, but="wake") == "nothing"


def test_a_frozen_exec_is_looked_for_soon_after_a_pod_has_gone() -> None:
    gone = Left(pod="0123abcd", at=NOW - 3, list=7)
    view = mpi_job(2, config=numbered(pods(0, 1), memory=Memory(left={LEAVING: gone})))
    seen = view.but(workers=tuple(but(one, probe=Probe(busy_seen=True)) for one in view.workers))
    looks = decide(seen.shown(at=NOW - 3), now=NOW).looks
    assert any(isinstance(look, LookIntoLauncher) for look in looks)


def unready(seconds: float, **facts: Any) -> Story:
    """A job whose second worker has not been Ready for so long."""
    pod = worker(1, ready_at=None, unready_at=NOW - seconds, **facts)
    return mpi_job(workers=(worker(0), pod, worker(2))).shown()


NOT_READY = {
    "for a moment": (unready(5.0), "nothing"),
    "for long": (unready(31.0), "publish 0 2"),
    "another pod": (unready(5.0, uid="a later pod"), "publish 0 2"),
    "on its way out": (unready(5.0, deleting=True), "publish 0 2"),
    "without a node": (unready(5.0, node_gone_at=NOW - 1), "publish 0 2"),
}


@pytest.mark.parametrize(("view", "plan"), NOT_READY.values(), ids=NOT_READY)
def test_a_worker_that_is_not_ready_for_a_moment_costs_no_start(view: Story, plan: str) -> None:
    assert does(view, but="wake").startswith(plan)


def test_all_workers_that_are_not_ready_for_a_moment_stay() -> None:
    pods_ = tuple(worker(index, ready_at=None, unready_at=NOW - 5) for index in range(3))
    view = mpi_job(workers=pods_).shown()
    assert does(view) == "wake 25"


def test_before_the_driver_has_started_looks_into_the_worker_count() -> None:
    view = draining().but(launcher=launcher(LauncherPhase.DELIVERING, mounts_elastic=True))
    view = view.but(role=role(*range(3))).shown(at=NOW - 20)
    assert "probe 2" in does(view)
    assert does(view.drained(2), but="wake") == "delete 2:drained"


@pytest.mark.parametrize("phase", [LauncherPhase.WAITING, LauncherPhase.STARTED])
def test_a_list_of_a_job_that_is_not_to_be_elastic_stays_as_the_webhook_wrote_it(
    phase: LauncherPhase,
) -> None:
    everybody = names.discover_hosts(list(pods(0, 1, 2)), slots=1)
    view = mpi_job(elastic=False, launcher=launcher(phase, mounts_elastic=True))
    view = view.but(workers=(worker(0), pending(1), failed(2)))
    view = view.configured(script=everybody, published=parse_script(everybody), memory=None)
    assert not any(isinstance(one, WriteConfig) for one in decide(view, now=NOW).actions)
    lacking = written(view.configured(elastic="", script=None, published=None))
    assert (lacking.script, lacking.elastic) == (everybody, elastic_script.TEXT)
    assert (lacking.added, lacking.removed, lacking.lost) == ((), (), ())


def test_a_successor_waits_until_the_driver_knows_that_the_former_pod_has_left() -> None:
    later = worker(2, uid="a later pod", created_at=NOW - 5)
    behind = draining(asked_at=NOW - 1, number=7, busy=frozenset({LEAVING})).but(
        workers=(worker(0), worker(1), later), role=role(*range(3))
    )
    assert "delete" not in does(behind)
    knows = behind.launched(acknowledged=Acknowledgement(asked_at=NOW - 1, number=8))
    assert "delete 2:unused" in does(knows)

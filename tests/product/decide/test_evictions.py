"""Workers that somebody tries to evict: they drain, are released, and are never deleted by us."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import DeleteWorkers, ProbeWorkers, ReleaseWorker, WriteConfig
from mpijob_elastic.decide.state import Standing
from mpijob_elastic.model import eviction
from mpijob_elastic.model.eviction import RETRIED_WITHIN, Eviction
from mpijob_elastic.model.job import JobView, Probe, Worker
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, launcher, pods, shown, worker
from tests.simulated_writes import run

REQUESTED = Eviction(released=False, at=NOW - 10)
RELEASED = Eviction(released=True, at=NOW - 10)
IDLE = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 7, idle_at=NOW - 1, idle_since=NOW - 6)


def evicted(mark: Eviction = REQUESTED, **facts: Any) -> Worker:
    return worker(2, eviction=mark, node="n", **facts)


def unlisted(pod: Worker, **facts: Any) -> JobView:
    """A job of three whose third worker left the list 9 s ago."""
    left = {pod.name: Left(pod=pod_fingerprint(pod.ref.uid), at=NOW - 9)}
    memory = Memory(left=left, removed_at=NOW - 9)
    workers = (worker(0), worker(1), pod)
    return shown(job(3, workers=workers, config=config(pods(0, 1), memory=memory), **facts), at=NOW - 9)


def actions(view: JobView) -> tuple[object, ...]:
    return decide(view, now=NOW).actions


def test_the_first_try_takes_the_worker_off_the_list_and_says_why() -> None:
    [change] = actions(job(3, workers=(worker(0), worker(1), evicted())))
    assert isinstance(change, WriteConfig)
    assert change.removed == pods(2)
    assert not change.lost
    [note] = change.notes
    assert (note.reason, "an eviction on node n" in note.message) == ("Disruption", True)
    assert not change.memory.moved


def test_it_is_probed_and_not_released_while_it_drains() -> None:
    plan = decide(unlisted(evicted()), now=NOW)
    assert not plan.actions
    [probe] = [look for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published]
    assert [pod.name for pod in probe.workers] == [*pods(2)]


@pytest.mark.parametrize("policy", [Policy(), Policy(replace_failed_workers=False)])
def test_once_drained_it_is_released_and_not_deleted(policy: Policy) -> None:
    [release] = actions(unlisted(evicted(probe=IDLE), policy=policy))
    assert isinstance(release, ReleaseWorker)
    assert (release.worker.ref, release.mark) == (evicted().ref, eviction.released(NOW))
    assert release.note.line == "EvictionAllowed: j-worker-2 may be evicted: drained after 9s"


def test_one_that_a_taint_moves_as_well_is_left_to_the_eviction() -> None:
    """Were it replaced meanwhile, the next try would evict its successor, which has its name."""
    both = evicted(disruption="taint spot", probe=IDLE)
    assert [type(action) for action in actions(unlisted(both))] == [ReleaseWorker]
    released = replace(both, eviction=RELEASED)
    view = unlisted(released)
    assert not actions(view)
    over = decide(view, now=RELEASED.at + RETRIED_WITHIN)
    moved = [action.memory.moved for action in over.actions if isinstance(action, WriteConfig)]
    assert [list(one) for one in moved] == [[released.name]]


def test_a_released_worker_stays_out_until_its_mark_is_over() -> None:
    view = unlisted(evicted(RELEASED, probe=IDLE))
    plan = decide(view, now=NOW)
    assert not plan.actions
    assert not [look for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published]
    assert plan.wake_at == RELEASED.at + RETRIED_WITHIN
    later = decide(view, now=RELEASED.at + RETRIED_WITHIN)
    [change] = [action for action in later.actions if isinstance(action, WriteConfig)]
    assert change.added == pods(2)
    assert "echo j-worker-2:1\n" in change.script


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, True),
        ({"probe": replace(IDLE, told=True)}, False),
        ({"probe": replace(IDLE, idle_at=None)}, False),
        ({"eviction": None}, False),
        ({"deleting": False}, False),
        ({"terminated": True, "running": False}, False),
        ({"ends_at": NOW}, False),
    ],
)
def test_once_its_eviction_deletes_it_its_main_process_is_told_that_it_drained(
    facts: dict[str, Any], told: bool
) -> None:
    """Once, and no other pod that is deleted: its main process sees its ranks leave."""
    pod = worker(2, **{"eviction": RELEASED, "deleting": True, "ends_at": NOW + 60, "probe": IDLE, **facts})
    plan = decide(unlisted(pod), now=NOW)
    looks = [look for look in plan.looks if isinstance(look, ProbeWorkers) and look.drained]
    assert [[pod.name for pod in look.workers] for look in looks] == ([[*pods(2)]] if told else [])


def test_after_an_error_it_is_told_again_later() -> None:
    failed = replace(IDLE, asked_at=NOW - 0.2, failed=1)
    pod = worker(2, eviction=RELEASED, deleting=True, ends_at=NOW + 60, probe=failed)
    plan = decide(unlisted(pod), now=NOW)
    assert not [look for look in plan.looks if isinstance(look, ProbeWorkers) and look.drained]
    assert plan.wake_at == pytest.approx(NOW + 0.3)


@pytest.mark.parametrize("mark", [REQUESTED, RELEASED])
def test_where_nobody_tries_again_all_is_as_before(mark: Eviction) -> None:
    view, done, _ = run(job(3, workers=(worker(0), worker(1), evicted(mark))), now=NOW)
    assert list(view.host_of.values()) == [*pods(0, 1, 2)]
    assert not [action for action in done if isinstance(action, DeleteWorkers)]


@pytest.mark.parametrize("mark", [Eviction(released=False, at=NOW - 500), Eviction(released=False, at=NOW + 600)])
def test_a_mark_that_is_over_or_from_the_future_changes_nothing(mark: Eviction) -> None:
    assert not actions(job(3, workers=(worker(0), worker(1), evicted(mark))))


def test_the_least_size_is_kept_until_a_replacement_trains() -> None:
    view = job(3, workers=(worker(0), worker(1), evicted()), policy=Policy(min_replicas=3))
    assert derive(view, now=NOW).by_name[pods(2)[0]].standing is Standing.HELD
    assert not [action for action in actions(view) if isinstance(action, WriteConfig)]


def test_the_last_worker_stays() -> None:
    marked = worker(0, eviction=REQUESTED)
    assert not [action for action in actions(job(1, workers=(marked,))) if isinstance(action, WriteConfig)]


def test_surplus_and_failed_workers_are_deleted_as_ever() -> None:
    surplus = unlisted(evicted(probe=IDLE), replicas=2)
    assert [type(action) for action in actions(surplus)] == [DeleteWorkers]
    ended = job(3, workers=(worker(0), worker(1), failed(2, eviction=REQUESTED)), config=config(pods(0, 1)))
    assert ReleaseWorker not in [type(action) for action in actions(ended)]


def test_without_elasticity_and_without_a_launcher_that_sees_the_list_nobody_leaves() -> None:
    workers = (worker(0), worker(1), evicted())
    for view in (
        job(3, workers=workers, elastic=False),
        job(3, workers=workers, launcher=launcher(mounts_discovery=False)),
    ):
        assert not [action for action in actions(view) if isinstance(action, ReleaseWorker | DeleteWorkers)]

"""The safety rules hold for the plan of every view, however unlikely."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from hypothesis import given, settings

from mpijob_elastic import names
from mpijob_elastic.decide import clock, decide, history, pacing, showing
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    Plan,
    ProbeWorkers,
    RefreshLauncher,
    Removal,
    TellUser,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model import memory
from mpijob_elastic.model.hosts import Published, parse_script
from mpijob_elastic.model.job import JobView, LauncherPhase, Worker
from mpijob_elastic.model.memory import Left
from tests.builders import NOW
from tests.properties.views import jobs, some

A = TypeVar("A", bound=Action)
LINE = re.compile(r"echo [a-z0-9.-]+:[1-9][0-9]*")


def of(kind: type[A], plan: Plan) -> list[A]:
    return [action for action in plan.actions if isinstance(action, kind)]


def removals(plan: Plan) -> Iterable[Removal]:
    return [removal for action in of(DeleteWorkers, plan) for removal in action.removals]


def others_are_left_alone(view: JobView, plan: Plan) -> None:
    if view.deleting or (view.foreign and view.handed_over):
        assert plan == Plan()
    elif view.foreign:
        assert all(names.is_handed_over(tell.text) for tell in of(TellUser, plan))
        assert len(plan.actions) == len(of(TellUser, plan)) <= 1


def a_host_is_added_when_it_is_ready_ours_reachable_and_wanted(view: JobView, plan: Plan) -> None:
    for host in (host for change in of(WriteConfig, plan) for host in change.added):
        worker = view.worker(host)
        assert worker is not None
        assert worker.ready
        assert view.role is not None
        assert host in view.role.exec_names
        assert worker.index < view.replicas or not view.elastic


def a_change_adds_or_removes(view: JobView, plan: Plan) -> None:
    for change in of(WriteConfig, plan):
        assert not (change.added and change.removed)
        if view.hosts:
            assert parse_script(change.script) != Published()


def the_script_is_valid_and_says_what_the_change_says(view: JobView, plan: Plan) -> None:
    for change in of(WriteConfig, plan):
        first, *lines = change.script.splitlines()
        assert first == "#!/bin/sh"
        assert all(LINE.fullmatch(line) for line in lines)
        published = parse_script(change.script)
        assert published is not None
        assert set(published.hosts) == {*view.hosts, *change.added} - {*change.removed}


def a_driver_gets_time_to_follow(view: JobView, plan: Plan) -> None:
    for change in of(WriteConfig, plan):
        readable = view.config is not None and view.config.published is not None
        gone = [host for host in change.removed if is_gone(view.worker(host))]
        if view.driver_may_run and readable and (change.added or change.removed) and not gone:
            changes = (view.memory.added_at, view.memory.removed_at)
            assert not showing.is_due(view, now=NOW)
            assert all(not NOW - pacing.SETTLE < at <= NOW + clock.SKEW for at in changes)


def is_gone(worker: Worker | None) -> bool:
    return worker is None or worker.deleting or worker.terminated


def whoever_leaves_is_remembered(view: JobView, plan: Plan) -> None:
    for change in of(WriteConfig, plan):
        assert memory.parse(memory.render(change.memory)) == change.memory
        for worker in view.workers:
            if worker.name in change.removed:
                assert change.memory.left[worker.name] == Left(uid=worker.ref.uid, at=NOW)
            if worker.name in change.added:
                assert worker.name not in change.memory.left


def a_worker_goes_for_a_reason(view: JobView, plan: Plan) -> None:
    for removal in removals(plan):
        worker = removal.worker
        assert worker in view.workers
        assert not worker.deleting
        if view.finished:
            assert view.clean_pod_policy in ("Running", "All")
            assert worker.index >= view.replicas
        elif worker.index < view.replicas:
            assert worker.terminated
            assert not worker.succeeded
            assert view.policy.replace_failed_workers is not False


def a_worker_of_a_job_that_goes_on_has_left_the_list_and_drained(view: JobView, plan: Plan) -> None:
    for removal in () if view.finished else removals(plan):
        worker = removal.worker
        assert view.elastic
        assert worker.name not in view.hosts or (worker.terminated and view.hosts == (worker.name,))
        if view.driver_running and view.launcher and not view.launcher.mounts_discovery:
            assert view.policy.delete_without_discovery
        if view.driver_may_run and not worker.terminated:
            assert history.is_known(view.config)
            left = history.left(view, worker, now=NOW)
            assert left is None or is_drained(view, worker, left)


def is_drained(view: JobView, worker: Worker, left: Left) -> bool:
    known_at = showing.known_since(view, left, now=NOW)
    if known_at is None or (view.driver_running and not view.hosts):
        return False
    quiet = worker.probe.idle_at is not None and worker.probe.idle_at >= known_at + 2.0
    return quiet or known_at + view.policy.drain_timeout <= NOW


def a_plain_job_notices_nothing(view: JobView, plan: Plan) -> None:
    if not view.elastic and not view.finished:
        assert all(isinstance(action, WriteConfig | TellUser) for action in plan.actions)
        assert all(view.config and change.hostfile == view.config.hostfile for change in of(WriteConfig, plan))


def a_launcher_that_started_is_never_deleted(view: JobView, plan: Plan) -> None:
    for action in of(DeleteLauncher, plan):
        assert action.launcher.phase in (LauncherPhase.WAITING, LauncherPhase.DELIVERING)
        assert not action.launcher.deleting
        assert view.elastic


def the_role_covers_every_worker_wanted_or_there(view: JobView, plan: Plan) -> None:
    for action in of(WriteRole, plan):
        assert {*view.wanted_names(), *(worker.name for worker in view.workers)} <= set(action.exec_names)
        if len(action.exec_names) < len(action.before):
            assert not view.surplus() or not set(action.exec_names) < set(action.before)


def we_never_wake_at_once_for_nothing(view: JobView, plan: Plan) -> None:
    assert plan.wake_at is None or plan.wake_at > NOW


RULES: list[Callable[[JobView, Plan], None]] = [
    others_are_left_alone,
    a_host_is_added_when_it_is_ready_ours_reachable_and_wanted,
    a_change_adds_or_removes,
    the_script_is_valid_and_says_what_the_change_says,
    a_driver_gets_time_to_follow,
    whoever_leaves_is_remembered,
    a_worker_goes_for_a_reason,
    a_worker_of_a_job_that_goes_on_has_left_the_list_and_drained,
    a_plain_job_notices_nothing,
    a_launcher_that_started_is_never_deleted,
    the_role_covers_every_worker_wanted_or_there,
    we_never_wake_at_once_for_nothing,
]


@settings(max_examples=2000, deadline=None)
@given(jobs)
def test_every_plan_keeps_the_rules(view: JobView) -> None:
    plan = decide(view, now=NOW)
    for rule in RULES:
        rule(view, plan)


@pytest.mark.parametrize(
    "kind",
    [WriteRole, WriteConfig, RefreshLauncher, ProbeWorkers, DeleteWorkers, DeleteLauncher, TellUser, WriteSelector],
)
def test_every_kind_of_action_is_among_the_plans(kind: type[Action]) -> None:
    assert some(lambda view: bool(of(kind, decide(view, now=NOW))))


@pytest.mark.parametrize("outcome", ["finished", "idle", "unused", "drained", "timeout", "failed"])
def test_every_reason_to_delete_is_among_the_plans(outcome: str) -> None:
    def has(view: JobView) -> bool:
        return any(removal.outcome == outcome for removal in removals(decide(view, now=NOW)))

    assert some(has)

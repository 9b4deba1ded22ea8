"""The whole policy put together: which steps come together, and which wait for one another."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    LookIntoLauncher,
    ProbeWorkers,
    RefreshLauncher,
    TellUser,
    WriteConfig,
    WriteRole,
)
from mpijob_elastic.model.execs import Exec, Held
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.policy import Problem
from tests.builders import NOW, config, failed, job, launcher, pods, role, worker

GONE_AT = NOW - 9
LEFT = Memory(left={"j-worker-2": Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=GONE_AT)}, removed_at=GONE_AT)
DROPPED = config(pods(0, 1, 2), memory=Memory(dropped_at=NOW - 60))
DRAINED = worker(2, probe=Probe(idle_at=NOW - 1, asked_at=NOW - 1))
SHRUNK: dict[str, Any] = {"config": config(pods(0, 1), memory=LEFT), "role": role(0, 1, 2)}


def kinds(view: JobView) -> list[type]:
    """Writes, and probes of leaving workers."""
    plan = decide(view, now=NOW)
    probes = [look for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published]
    return [type(action) for action in (*plan.actions, *probes)]


@pytest.mark.parametrize(
    "view",
    [
        job(),
        job(replicas=2, deleting=True),
        job(replicas=2, foreign="another operator's", notices="HandedOver: told"),
        job(replicas=2, finished=True, deleting=True, clean_pod_policy="All"),
        job(replicas=2, finished=True),
        job(replicas=2, launcher=launcher(LauncherPhase.FINISHED)),
        job(replicas=2, config=None),
        job(replicas=2, role=None),
        job(replicas=2, workers=(), launcher=None),
    ],
    ids=[
        "rest",
        "deleting",
        "foreign",
        "deleting-finished",
        "finished",
        "launcher-ended",
        "no-config-map",
        "no-role",
        "no-pod",
    ],
)
def test_when_nothing_is_done(view: JobView) -> None:
    plan = decide(view, now=NOW)
    assert (plan.actions, plan.wake_at) == ((), None)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        # Scale-out: Role first, the list when they are Ready, then the touch.
        (job(3, replicas=4), [WriteRole]),
        (job(4, config=config(pods(0, 1, 2))), [WriteConfig]),
        (job(known=False), [RefreshLauncher]),
        (job(4, config=config(pods(0, 1, 2)), role=role(0, 1, 2)), [WriteRole]),
        # Scale-in: list, touch, look, delete.
        (job(3, replicas=2), [WriteConfig]),
        (job(2, known=False, workers=(worker(0), worker(1), worker(2)), **SHRUNK), [RefreshLauncher]),
        (job(2, workers=(worker(0), worker(1), worker(2)), **SHRUNK), [ProbeWorkers]),
        (job(2, workers=(worker(0), worker(1), DRAINED), **SHRUNK), [DeleteWorkers]),
        (job(2, **SHRUNK), []),
        # What was scaled away while something else is due.
        (job(3, replicas=4, workers=(worker(0), worker(1), failed(2))), [WriteRole, WriteConfig]),
        (job(finished=True, replicas=1, clean_pod_policy="All"), [DeleteWorkers]),
        (job(problems=(Problem(field="f", value="v", allowed="a"),)), [TellUser]),
        (job(launcher=launcher(LauncherPhase.DELIVERING), config=DROPPED), [DeleteLauncher]),
    ],
)
def test_the_steps(view: JobView, expected: list[type]) -> None:
    assert kinds(view) == expected


@pytest.mark.parametrize("missing", [{"role": None}, {"config": None}])
def test_looks_go_on_while_the_operator_creates_what_is_missing(missing: dict[str, Any]) -> None:
    gone = Exec(pid=41, pod="j-worker-3", started_at=NOW - 600)
    held = Held(asked_at=NOW - 60, suspects=(gone,), frozen=(gone,))
    view = job(launcher=launcher(held=held), **missing)
    assert [action.execs for action in decide(view, now=NOW).actions if isinstance(action, EndExecs)] == [(gone,)]
    tried = job(launcher=launcher(held=replace(held, tried_at=NOW - 60)), **missing)
    assert any(isinstance(look, LookIntoLauncher) for look in decide(tried, now=NOW).looks)


def test_published_workers_are_probed_while_the_role_is_missing() -> None:
    assert [type(look) for look in decide(job(role=None), now=NOW).looks] == [ProbeWorkers]


def test_deletions_do_not_wait_for_looks_that_may_fail() -> None:
    left = {pod: Left(pod=pod_fingerprint(f"uid-of-{pod}"), at=GONE_AT) for pod in pods(2, 3)}
    seen = config(pods(0, 1), memory=Memory(left=left, removed_at=GONE_AT))
    view = job(2, workers=(worker(0), worker(1), DRAINED, worker(3)), config=seen, role=role(0, 1, 2, 3))
    assert kinds(view) == [DeleteWorkers, ProbeWorkers]

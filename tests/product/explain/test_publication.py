"""Causes between a Ready pod and the launcher."""

import pytest

from mpijob_elastic.explain.findings import Level
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import LONG_AGO, NOW, config, job, launcher, named, pods, role, shown, worker
from tests.product.explain.said import of_worker

AWAY = "no controller leads"
TWO = config(pods(0, 1))


@pytest.mark.parametrize(
    ("view", "cause", "words"),
    [
        (job(role=role(0, 1)), "no-right", "is not in the launcher's Role yet"),
        (job(role=None), "no-right", "is not in the launcher's Role yet"),
        (job(config=TWO), "not-published", "the controller adds it next"),
        (job(known=False), "launcher-not-refreshed", "the controller refreshes the launcher next"),
    ],
)
def test_the_next_step_needs_a_controller_that_leads(view: JobView, cause: str, words: str) -> None:
    found = of_worker(view, 2)
    assert (found.cause, found.level) == (cause, Level.WAITING)
    assert words in found.says
    away = of_worker(view, 2, controller=AWAY)
    assert (away.cause, away.level) == (cause, Level.WRONG)
    assert AWAY in away.says
    assert away.next_step.startswith("kubectl -n mpijob-elastic logs")


def test_without_the_right_to_read_roles_nothing_is_said_of_them() -> None:
    assert of_worker(job(role=None), 2, role_readable=False).cause == "not-known"
    found = of_worker(job(role=None, config=TWO), 2, role_readable=False)
    assert found.cause == "not-published"
    assert "the right to read Roles" in found.says


def test_a_change_that_settles_says_for_how_long() -> None:
    view = job(config=config(pods(0, 1), memory=Memory(removed_at=NOW - 1.0)), known=False)
    found = of_worker(shown(view, at=NOW - 1.0), 2)
    assert (found.cause, found.level) == ("settling", Level.WAITING)
    assert "joins discover_hosts.sh in 2s" in found.says
    assert "an earlier change" in found.says


def test_a_worker_that_waits_for_ranks_after_a_loss_says_what_decides_how_long() -> None:
    pod = pods(1)[0]
    memory = Memory(
        left={pod: Left(pod=pod_fingerprint(f"uid-of-{pod}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10)},
        hosts={name: named(name) for name in pods(0, 1, 2)},
    )
    successor = worker(1, uid="new", created_at=NOW - 10, ready_at=NOW - 5)
    view = job(workers=(worker(0), successor, worker(2)), config=config(pods(0, 2), memory=memory))
    found = of_worker(view, 1)
    assert found.cause == "settling"
    assert "in 30s: the controller waits for the other ranks to get over a loss: Gloo's timeout" in found.says


def test_a_worker_that_leaves_a_node_that_goes() -> None:
    workers = (worker(0), worker(1), worker(2, disruption="taint karpenter.sh/disrupted"))
    by_pod = of_worker(job(workers=workers, config=TWO), 2)
    by_node = of_worker(job(config=TWO), 2, threats={"j-worker-2": "taint karpenter.sh/disrupted"})
    for found in (by_pod, by_node):
        assert (found.cause, found.level) == ("disrupted", Level.WAITING)
        assert "karpenter.sh/disrupted" in found.says


@pytest.mark.parametrize("phase", [None, LauncherPhase.WAITING, LauncherPhase.DELIVERING, LauncherPhase.FINISHED])
def test_before_and_after_the_launcher_runs_nobody_trains(phase: LauncherPhase | None) -> None:
    view = job(launcher=launcher(phase) if phase else None)
    for each in (view, job(launcher=view.launcher, elastic=False)):
        assert of_worker(each, 2).cause == "no-launcher"


def test_a_launcher_without_the_list_never_learns_of_a_new_worker() -> None:
    view = job(launcher=launcher(mounts_discovery=False), config=config(pods(0, 1, 2), hostfile=pods(0, 1)))
    assert of_worker(view, 2).cause == "blind-launcher"
    assert of_worker(view, 1).cause == "not-known"


def test_a_job_that_is_not_elastic_waits_for_no_list() -> None:
    found = of_worker(job(elastic=False, config=config([])), 2)
    assert (found.cause, found.level) == ("not-known", Level.UNKNOWN)

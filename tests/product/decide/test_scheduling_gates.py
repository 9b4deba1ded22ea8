"""When gates come off."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import Gated, Ungate
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.queue import Queue
from tests.builders import NOW, config, job, launcher, pending, pods

OURS, THEIRS = names.GATE_SUSPENDED, "kueue.x-k8s.io/admission"


def held(*gates: str, **facts: Any) -> JobView:
    """A job whose launcher and workers have never been scheduled because of these gates."""
    workers = tuple(pending(index, gates=gates) for index in range(2))
    held_launcher = launcher(LauncherPhase.WAITING, gates=gates)
    return job(2, workers=workers, launcher=held_launcher, config=config([], hostfile=pods(0, 1)), known=False, **facts)


def lifted(view: JobView) -> tuple[Gated, ...]:
    actions = decide(view, now=NOW).actions
    return next((action.pods for action in actions if isinstance(action, Ungate)), ())


def test_the_pods_of_a_suspended_job_stay_gated() -> None:
    assert lifted(held(OURS, suspended_by="annotation x")) == ()


def test_a_job_that_is_not_suspended_any_more_starts_with_its_launcher() -> None:
    view = held(OURS)
    assert view.launcher is not None
    assert lifted(view) == tuple(Gated(ref=ref) for ref in (view.launcher.ref, *(pod.ref for pod in view.workers)))


def test_a_job_that_is_resumed_and_queued_says_that_it_waits() -> None:
    [action] = decide(held(OURS, names.GATE_QUEUED, queue=Queue(name="team")), now=NOW).actions
    assert isinstance(action, Ungate)
    assert {gated.kept for gated in action.pods} == {(names.GATE_QUEUED,)}
    assert action.note.message == "j is not suspended any more, and waits in its queue"


def test_the_gates_of_others_stay_in_their_order() -> None:
    assert {gated.kept for gated in lifted(held("a", OURS, THEIRS))} == {("a", THEIRS)}
    assert lifted(held(THEIRS)) == ()


def test_what_a_crash_left_is_lifted_later() -> None:
    view = held(OURS)
    view = replace(view, launcher=launcher(LauncherPhase.WAITING))
    assert [gated.ref.name for gated in lifted(view)] == ["j-worker-0", "j-worker-1"]


@pytest.mark.parametrize("facts", [{"deleting": True}, {"finished": True}])
def test_nothing_is_lifted_for_a_job_that_is_over(facts: dict[str, Any]) -> None:
    assert lifted(held(OURS, **facts)) == ()


def test_a_job_of_another_operator_gets_its_gates_off_too_because_nobody_else_would() -> None:
    assert len(lifted(held(OURS, foreign="an operator"))) == 3


def test_the_job_says_that_it_is_suspended() -> None:
    [told] = decide(held(OURS, suspended_by="annotation x"), now=NOW).actions[-1:]
    assert "Suspended: j is suspended by annotation x" in getattr(told, "text", "")


def test_a_gated_launcher_is_no_driver_that_may_run() -> None:
    assert not held(OURS).driver_may_run
    assert held().driver_may_run

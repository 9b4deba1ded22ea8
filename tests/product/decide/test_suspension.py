"""How a running job is suspended, and what must be gone before it starts again."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    LowerPodGroup,
    Removal,
    RollBack,
    TellUser,
    Ungate,
    WriteConfig,
)
from mpijob_elastic.model.job import JobView, LauncherPhase, PodGroup, Probe, Refusal
from mpijob_elastic.model.memory import Growth, Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, config, job, launcher, pending, pods, ref, shown, worker

GATES = (names.GATE_SUSPENDED,)
BY = "annotation x"


def training(size: int = 3, **facts: Any) -> JobView:
    return job(size, **{"suspended_by": BY, **facts})


def due(view: JobView) -> tuple[Action, ...]:
    return decide(view, now=NOW).actions


def removed(view: JobView) -> tuple[Removal, ...]:
    return next((action.removals for action in due(view) if isinstance(action, DeleteWorkers)), ())


def stopped(*workers: Any, hosts: tuple[str, ...] = (), age: float = 60.0, **facts: Any) -> JobView:
    """A job whose launcher went, so that the next one waits at the gate."""
    held = launcher(LauncherPhase.WAITING, gates=GATES, created_at=NOW - age)
    published = config(hosts, hostfile=pods(*range(len(workers))))
    return job(len(workers), workers=workers, launcher=held, config=published, known=False, **facts)


def drained(view: JobView) -> JobView:
    """The same job after all workers but the first have left the list and drained."""
    gone = {pod: Left(pod=pod_fingerprint(f"uid-of-{pod}"), at=LONG_AGO) for pod in pods(1, 2)}
    idle = Probe(busy_seen=True, idle_at=NOW, asked_at=NOW)
    workers = (worker(0), *(worker(index, probe=idle) for index in (1, 2)))
    return shown(replace(view, workers=workers, config=config(pods(0), memory=Memory(left=gone))))


def test_a_job_that_trains_shrinks_first_to_what_its_driver_needs() -> None:
    [change] = due(training())
    assert isinstance(change, WriteConfig)
    assert change.removed == pods(1, 2)
    assert change.lost == ()
    [kept] = due(training(min_np_workers=2))
    assert isinstance(kept, WriteConfig)
    assert kept.removed == pods(2)


def test_the_launcher_waits_for_workers_that_drain() -> None:
    view = drained(training())
    view = replace(view, workers=(worker(0), *(worker(index, probe=Probe(asked_at=NOW)) for index in (1, 2))))
    assert not any(isinstance(action, DeleteLauncher) for action in decide(view, now=LONG_AGO + 59).actions)


def test_drained_workers_go_and_then_the_launcher_at_once() -> None:
    view = drained(training())
    assert [removal.outcome for removal in removed(view)] == ["drained", "drained"]
    alone = replace(view, workers=(worker(0),))
    [deleted] = [action for action in due(alone) if isinstance(action, DeleteLauncher)]
    assert deleted.suspends
    assert "is suspended by annotation x" in deleted.note.message


def test_what_the_operator_made_again_waits_at_the_gate() -> None:
    alone = replace(drained(training()), workers=(worker(0), pending(1, gates=GATES), pending(2, gates=GATES)))
    assert removed(alone) == ()
    assert any(isinstance(action, DeleteLauncher) for action in due(alone))
    fewer = stopped(pending(0, gates=GATES), pending(1, gates=GATES), suspended_by=BY)
    smaller = replace(fewer, replicas=1, config=config([], hostfile=pods(0)))
    assert [removal.worker.name for removal in removed(smaller)] == ["j-worker-1"]


@pytest.mark.parametrize(
    "facts",
    [
        {"size": 1},
        {"min_np_workers": 3},
        {"launcher": launcher(mounts_discovery=False), "config": config(pods(0))},
        {"workers": (worker(0), worker(1, deleting=True, ends_at=NOW), worker(2, deleting=True, ends_at=NOW))},
    ],
)
def test_where_nobody_can_drain_the_launcher_goes_at_once(facts: dict[str, Any]) -> None:
    facts = {"config": config(pods(0)), **facts} if "workers" in facts else facts
    assert any(isinstance(action, DeleteLauncher) for action in due(training(**facts)))


def test_a_launcher_that_cannot_be_told_of_the_list_is_not_waited_for() -> None:
    view = training(config=config(pods(0)), known=False)
    assert view.config is not None
    assert not any(isinstance(action, DeleteLauncher) for action in due(view))
    tries = Tries(count=2, at=NOW, uid="uid-of-j-launcher")
    refused = launcher(refused=Refusal(change=view.config.digest, tries=tries, reason="policy"))
    assert any(isinstance(action, DeleteLauncher) for action in due(replace(view, launcher=refused)))


def test_a_launcher_that_passed_by_the_webhook_is_replaced_at_a_pace() -> None:
    young = launcher(LauncherPhase.DELIVERING, created_at=NOW - 1, delivering_since=NOW)
    view = training(launcher=young, known=False)
    plan = decide(view, now=NOW)
    assert not any(isinstance(action, DeleteLauncher) for action in plan.actions)
    assert any(isinstance(action, DeleteLauncher) for action in decide(view, now=NOW + 4).actions)


def test_once_the_launcher_has_gone_the_list_becomes_empty_and_the_last_workers_go() -> None:
    last, waits = worker(0, created_at=LONG_AGO), pending(1, gates=GATES)
    [change] = due(stopped(last, waits, hosts=pods(0), suspended_by=BY))
    assert isinstance(change, WriteConfig)
    assert (change.removed, change.lost, change.script) == (pods(0), (), "#!/bin/sh\n")
    assert change.memory.hosts == {}
    [removal] = removed(stopped(last, waits, suspended_by=BY))
    assert (removal.worker, removal.outcome, removal.grace) == (last, "suspended", 1)
    assert (removal.note.reason, removal.note.warning) == ("WorkerSuspended", False)


def test_without_a_launcher_all_workers_of_a_suspended_job_go() -> None:
    view = training(launcher=None, config=config([], hostfile=pods(0, 1, 2)), known=False)
    assert [removal.outcome for removal in removed(view)] == ["suspended"] * 3


def test_a_worker_that_passed_by_the_webhook_is_replaced_at_a_pace() -> None:
    view = stopped(pending(0, created_at=NOW - 1), age=60.0, suspended_by=BY)
    assert removed(view) == ()
    assert decide(view, now=NOW).wake_at == NOW + 4
    assert removed(stopped(pending(0, created_at=NOW - 5), suspended_by=BY))


def test_a_resumed_job_starts_when_the_workers_of_the_launcher_before_are_gone() -> None:
    """Their ranks may still run."""
    old, young, waits = worker(0), pending(1, created_at=NOW - 1), pending(2, gates=GATES, created_at=NOW)
    going = replace(old, deleting=True, ends_at=NOW + 2)
    assert [removal.worker for removal in removed(stopped(old, young, waits))] == [old]
    assert not any(isinstance(action, Ungate) for action in due(stopped(going, young, waits)))
    [lifted] = due(stopped(young, waits))
    assert isinstance(lifted, Ungate)
    assert [gated.ref.name for gated in lifted.pods] == ["j-launcher", "j-worker-2"]


def test_the_job_says_that_it_is_suspended_before_its_launcher_goes_and_until_the_next_waits() -> None:
    """A crash may come after any write, and a resume at any time; by this the webhook holds the next launcher back."""
    alone = replace(drained(training()), workers=(worker(0),))
    kinds = [type(action) for action in due(alone)]
    assert kinds.index(TellUser) < kinds.index(DeleteLauncher)
    resumed = replace(alone, suspended_by="", notices="Suspended: j is suspended by x")
    told = [action for action in due(resumed) if isinstance(action, TellUser)]
    assert [action.text for action in told] == [""]
    gone = replace(resumed, launcher=None)
    waits = stopped(worker(0), pending(1, gates=GATES), notices=resumed.notices)
    assert not any(isinstance(action, TellUser) for view in (gone, waits) for action in due(view))


def test_a_job_that_is_resumed_while_it_drains_has_lost_nothing() -> None:
    view = replace(drained(training()), suspended_by="")
    [change] = due(view)
    assert isinstance(change, WriteConfig)
    assert change.added == pods(1, 2)


def test_the_gang_stays_as_large_as_it_was() -> None:
    group = PodGroup(ref=ref("j"), min_member=4)
    assert not any(isinstance(action, LowerPodGroup) for action in due(training(pod_group=group)))


def test_no_size_is_taken_back_while_the_job_is_suspended_or_for_the_time_that_it_was() -> None:
    policy, grown = Policy(scale_timeout=60.0), Memory(growth=Growth(worked=2, asked=3, at=LONG_AGO))
    workers, listed = (worker(0), worker(1), pending(2)), config(pods(0, 1), memory=grown)
    running = job(3, policy=policy, workers=workers, config=listed)
    assert any(isinstance(action, RollBack) for action in due(running))
    assert not any(isinstance(action, RollBack) for action in due(replace(running, suspended_by=BY)))
    held = stopped(worker(0), pending(1, gates=GATES), hosts=pods(0), policy=policy, suspended_by=BY)
    [change] = due(held)
    assert isinstance(change, WriteConfig)
    assert change.memory.growth is not None
    assert change.memory.growth.asked == 0

"""How a running job is suspended, and what must be gone before it starts again."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.model.job import JobView, LauncherPhase, PodGroup, Probe, Refusal
from mpijob_elastic.model.memory import Growth, Memory
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, Story, config, job, launcher, left, pending, pods, ref, tries, worker
from tests.product.decide.plans import change, does, notes, removals

GATES = (names.GATE_SUSPENDED,)
BY = "annotation x"
LAST, WAITS = worker(0), pending(1, gates=GATES)


def training(size: int = 3, **facts: Any) -> Story:
    return job(size, **{"suspended_by": BY, **facts})


def stopped(*workers: Any, hosts: tuple[str, ...] = (), age: float = 60.0, **facts: Any) -> Story:
    """A job whose launcher went, so that the next one waits at the gate."""
    held = launcher(LauncherPhase.WAITING, gates=GATES, created_at=NOW - age)
    published = config(hosts, hostfile=pods(*range(len(workers))))
    return job(len(workers), workers=workers, launcher=held, config=published, known=False, **facts)


def shrunk(probe: Probe) -> Story:
    """All workers but the first have left the list, and were looked into."""
    gone = {pod: left(pod, ago=3600) for pod in pods(1, 2)}
    view = training(config=config(pods(0), memory=Memory(left=gone)))
    return view.pod(1, probe=probe).pod(2, probe=probe)


DRAINED = shrunk(Probe(busy_seen=True, idle_at=NOW, asked_at=NOW))
ALONE = DRAINED.without(1, 2)
YOUNG = launcher(LauncherPhase.DELIVERING, created_at=NOW - 1, delivering_since=NOW)
GOING: dict[str, Any] = {"deleting": True, "ends_at": NOW}
GROWN = Growth(worked=2, asked=3, at=LONG_AGO)
TIMED = Policy(scale_timeout=60.0)
AT_ONCE = "say Suspended; delete launcher, suspended"


def test_a_job_that_trains_shrinks_first_to_what_its_driver_needs() -> None:
    assert does(training()) == "publish 0 (Draining)"
    assert does(training(min_np_workers=2)) == "publish 0 1 (Draining)"


def test_the_launcher_waits_for_workers_that_drain() -> None:
    view = shrunk(Probe(asked_at=NOW))
    assert does(view, now=LONG_AGO + 59, but="touch") == "say Suspended; probe 2 1; wake 1"
    assert does(view, now=LONG_AGO + 60, but="touch") == "delete 2:timeout 1:timeout; say Suspended"


def test_drained_workers_go_and_then_the_launcher_which_the_job_says_before() -> None:
    """A crash may come after any write, and a resume at any time; by this the webhook holds the next launcher back."""
    assert does(DRAINED) == "delete 2:drained 1:drained; say Suspended"
    assert does(ALONE) == AT_ONCE
    assert "is suspended by annotation x" in notes(ALONE)[0].message


def test_what_the_operator_made_again_waits_at_the_gate() -> None:
    assert does(ALONE.but(workers=(LAST, WAITS, pending(2, gates=GATES)))) == AT_ONCE
    fewer = stopped(pending(0, gates=GATES), WAITS, suspended_by=BY)
    smaller = fewer.but(replicas=1, config=config([], hostfile=pods(0)))
    assert does(smaller) == "delete 1:idle; say Suspended"


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(training(1), AT_ONCE, id="it is the last worker"),
        pytest.param(training(min_np_workers=3), AT_ONCE, id="training needs them all"),
        pytest.param(
            training(launcher=launcher(mounts_discovery=False), config=config(pods(0))),
            "say Suspended LauncherWithoutDiscovery; delete launcher, suspended",
            id="the launcher is blind",
        ),
        pytest.param(
            training(config=config(pods(0))).pod(1, **GOING).pod(2, **GOING),
            f"{AT_ONCE}; wake 60",
            id="they are being deleted",
        ),
    ],
)
def test_where_nobody_can_drain_the_launcher_goes_at_once(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_a_launcher_that_cannot_be_told_of_the_list_is_not_waited_for() -> None:
    view = training(config=config(pods(0)), known=False)
    gone = "delete 2:unused 1:unused"
    assert does(view) == f"touch; {gone}; say Suspended"
    refused = view.launched(refused=Refusal(change=view.config.digest, tries=tries(2), reason="policy"))
    assert does(refused) == f"{gone}; say Suspended RefreshRefused; delete launcher, suspended; wake 2"


def test_a_launcher_that_passed_by_the_webhook_is_replaced_at_a_pace() -> None:
    view = training(launcher=YOUNG, known=False)
    assert does(view) == "say Suspended; wake 4"
    assert does(view, now=NOW + 4) == "say Suspended; delete launcher, suspended"


def test_once_the_launcher_has_gone_the_list_becomes_empty_and_the_last_workers_go() -> None:
    listed = stopped(LAST, WAITS, hosts=pods(0), suspended_by=BY)
    assert does(listed) == "publish nobody"
    assert change(listed).script == "#!/bin/sh\n"
    assert change(listed).memory.hosts == {}
    empty = stopped(LAST, WAITS, suspended_by=BY)
    assert does(empty) == "delete 0:suspended; say Suspended"
    [gone, _] = notes(empty)
    assert (gone.reason, gone.warning) == ("WorkerSuspended", False)
    assert removals(empty)[0].grace == 1


def test_without_a_launcher_all_workers_of_a_suspended_job_go() -> None:
    view = training(launcher=None, config=config([], hostfile=pods(0, 1, 2)), known=False)
    assert does(view) == "delete 2:suspended 1:suspended 0:suspended; say Suspended"


def test_a_worker_that_passed_by_the_webhook_is_replaced_at_a_pace() -> None:
    young = stopped(pending(0, created_at=NOW - 1), suspended_by=BY)
    assert does(young) == "say Suspended; wake 4"
    assert does(young.pod(0, created_at=NOW - 5)) == "delete 0:suspended; say Suspended"


def test_a_resumed_job_starts_when_the_workers_of_the_launcher_before_are_gone() -> None:
    """Their ranks may still run."""
    young, waits = pending(1, created_at=NOW - 1), pending(2, gates=GATES, created_at=NOW)
    assert does(stopped(LAST, young, waits)) == "delete 0:suspended"
    assert does(stopped(replace(LAST, deleting=True, ends_at=NOW + 2), young, waits)) == "wake 62"
    assert does(stopped(young, waits)) == "ungate launcher 2"


def test_the_job_says_that_it_is_suspended_until_the_next_launcher_waits() -> None:
    resumed = ALONE.but(suspended_by="", notices="Suspended: j is suspended by x")
    assert does(resumed) == "say nothing more"
    assert does(resumed.but(launcher=None)) == "hostfile 0 1 2"
    assert does(stopped(LAST, WAITS, notices=resumed.notices)) == "delete 0:suspended"


def test_a_job_that_is_resumed_while_it_drains_has_lost_nothing() -> None:
    assert does(DRAINED.but(suspended_by="")) == "publish 0 1 2 (HostsPublished)"


def test_the_gang_stays_as_large_as_it_was() -> None:
    assert does(training(pod_group=PodGroup(ref=ref("j"), min_member=4))) == "publish 0 (Draining)"


def test_no_size_is_taken_back_while_the_job_is_suspended_or_for_the_time_that_it_was() -> None:
    listed = config(pods(0, 1), memory=Memory(growth=GROWN))
    running = job(3, policy=TIMED, workers=(worker(0), worker(1), pending(2)), config=listed)
    assert does(running) == "say WorkersNotReady; return 3 to 2"
    assert does(running.but(suspended_by=BY)) == "publish 0 (Draining)"
    held = stopped(LAST, WAITS, hosts=pods(0), policy=TIMED, suspended_by=BY)
    assert change(held).memory.growth.asked == 0
    assert change(held.remembering(growth=GROWN)).memory.growth.asked == 0

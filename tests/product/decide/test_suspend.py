"""How a running job is suspended, what must be gone before it starts again, and when gates come off."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.facts import Scaling
from mpijob_elastic.capabilities.gangs.facts import PodGroup
from mpijob_elastic.capabilities.kueue.facts import Queue
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import LauncherPhase, Probe, RefusedTouch
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    left,
    pending,
    pods,
    ref,
    tries,
    worker,
)
from tests.product.decide.plans import change, does, notes, removals
from tests.queues import granted, queue
from tests.rooms.autoscaling import grown
from tests.simulated_writes import run

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
GROWN = grown(2, asked=3)
TIMED = Scaling(scale_timeout=60.0)
AT_ONCE = "say Suspended; delete launcher, suspended"


YOUNG_LAUNCHER = training(launcher=YOUNG, known=False)
BLIND_LIST = training(config=config(pods(0)), known=False)
WHILE_REFUSED = RefusedTouch(change=BLIND_LIST.config.digest, tries=tries(2), reason="policy")
MADE_AGAIN = ALONE.but(workers=(LAST, WAITS, pending(2, gates=GATES)))
FEWER = stopped(pending(0, gates=GATES), WAITS, suspended_by=BY).but(
    replicas=1, config=config([], hostfile=pods(0))
)
LISTED = stopped(LAST, WAITS, hosts=pods(0), suspended_by=BY)
EMPTY = stopped(LAST, WAITS, suspended_by=BY)
JUST_MADE = stopped(pending(0, created_at=NOW - 1), suspended_by=BY)
RESUMED = ALONE.but(suspended_by="", notices="Suspended: j is suspended by x")
ASKED_TO_STOP: list[dict[str, Any]] = [
    {"suspended_by": BY},
    {"queue": queue(granted(workers=2, evicted=True, said="Preempted"))},
]
BEFORE, AFTER = pending(1, created_at=NOW - 1), pending(2, gates=GATES, created_at=NOW)
THEIRS = "kueue.x-k8s.io/admission"
GROWN_LIST = config(pods(0, 1), memory=Memory(own=GROWN))
GROWS = job(3, scaling=TIMED, workers=(worker(0), worker(1), pending(2)), config=GROWN_LIST)


def held(*gates: str, **facts: Any) -> Story:
    """A job whose launcher and workers have never been scheduled because of these gates."""
    return (
        stopped(*(pending(index, gates=gates) for index in range(2)))
        .launched(gates=gates)
        .but(**facts)
    )


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(training(), "publish 0 (Draining)", id="a job that trains shrinks first"),
        pytest.param(
            training(min_np_workers=2), "publish 0 1 (Draining)", id="to what its driver needs"
        ),
        pytest.param(DRAINED, "delete 2:drained 1:drained; say Suspended", id="drained workers go"),
        pytest.param(ALONE, AT_ONCE, id="then the launcher, which the job says before"),
        pytest.param(MADE_AGAIN, AT_ONCE, id="what the operator made again waits"),
        pytest.param(FEWER, "delete 1:idle; say Suspended", id="and goes where it is surplus"),
        pytest.param(training(1), AT_ONCE, id="the last worker cannot drain"),
        pytest.param(training(min_np_workers=3), AT_ONCE, id="training needs all workers"),
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
        pytest.param(
            BLIND_LIST,
            "touch; delete 2:unused 1:unused; say Suspended",
            id="the launcher is to be told",
        ),
        pytest.param(
            BLIND_LIST.launched(refused=WHILE_REFUSED),
            "delete 2:unused 1:unused; say Suspended RefreshRefused; delete launcher, suspended; wake 2",
            id="it cannot be told, and is not waited for",
        ),
        pytest.param(
            YOUNG_LAUNCHER, "say Suspended; wake 4", id="a launcher that passed by the webhook"
        ),
        pytest.param(
            YOUNG_LAUNCHER.launched(created_at=NOW - 5, delivering_since=NOW - 4),
            AT_ONCE,
            id="is replaced at a pace",
        ),
        pytest.param(
            LISTED, "publish nobody", id="once the launcher has gone the list becomes empty"
        ),
        pytest.param(EMPTY, "delete 0:suspended; say Suspended", id="and the last workers go"),
        pytest.param(
            training(launcher=None, config=config([], hostfile=pods(0, 1, 2)), known=False),
            "delete 2:suspended 1:suspended 0:suspended; say Suspended",
            id="without a launcher all go",
        ),
        pytest.param(JUST_MADE, "say Suspended; wake 4", id="a worker that passed by the webhook"),
        pytest.param(
            JUST_MADE.pod(0, created_at=NOW - 5),
            "delete 0:suspended; say Suspended",
            id="is replaced at a pace, too",
        ),
        # Their ranks may still run.
        pytest.param(
            stopped(LAST, BEFORE, AFTER), "delete 0:suspended", id="resumed, a worker of before"
        ),
        pytest.param(
            stopped(but(LAST, deleting=True, ends_at=NOW + 2), BEFORE, AFTER),
            "wake 62",
            id="resumed, it goes",
        ),
        pytest.param(
            stopped(BEFORE, AFTER),
            "allow 0 1 2; delete 2:idle; ungate launcher",
            id="resumed, it is gone",
        ),
        pytest.param(RESUMED, "say nothing more", id="resumed with its launcher"),
        pytest.param(
            RESUMED.but(launcher=None), "hostfile 0 1 2", id="said until the next launcher waits"
        ),
        pytest.param(
            stopped(LAST, WAITS, notices=RESUMED.facts.notices),
            "delete 0:suspended",
            id="and after that",
        ),
        pytest.param(
            DRAINED.but(suspended_by=""),
            "publish 0 1 2 (HostsPublished)",
            id="resumed, nothing is lost",
        ),
        pytest.param(
            training(pod_group=PodGroup(metadata=ref("j"), min_member=4)),
            "publish 0 (Draining)",
            id="its gang stays",
        ),
        pytest.param(GROWS, "say WorkersNotReady; return 3 to 2", id="a size that is taken back"),
        pytest.param(
            GROWS.but(suspended_by=BY), "publish 0 (Draining)", id="is not while it is suspended"
        ),
        pytest.param(held(*GATES, suspended_by=BY), "say Suspended", id="its gates stay"),
        pytest.param(held(*GATES), "ungate launcher 0 1", id="and come off together"),
        pytest.param(held(*GATES).launched(gates=()), "ungate 0 1", id="also what a crash left"),
        pytest.param(
            held("a", *GATES, THEIRS),
            f"ungate launcher[a,{THEIRS}] 0[a,{THEIRS}] 1[a,{THEIRS}]",
            id="others stay",
        ),
        pytest.param(held(THEIRS), "nothing", id="only gates of others"),
        pytest.param(held(*GATES, deleting=True), "nothing", id="gated, and deleted"),
        pytest.param(held(*GATES, finished=True), "nothing", id="gated, and finished"),
        # Nobody else would.
        pytest.param(
            held(*GATES, foreign="an operator"),
            "say HandedOver; ungate launcher 0 1",
            id="gated, and another operator's",
        ),
    ],
)
def test_what_is_done(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_the_launcher_waits_for_workers_that_drain() -> None:
    view = shrunk(Probe(asked_at=NOW))
    reminds = "remind of 2 1 by 0.r01 (HostListRepeated)"
    waits = f"{reminds}; say Suspended; probe 2 1; wake 1"
    assert does(view, now=LONG_AGO + 59, but="touch") == waits
    assert does(view, now=LONG_AGO + 60, but="touch") == "delete 2:timeout 1:timeout; say Suspended"


@pytest.mark.parametrize(
    "first", [pending(0), failed(0), worker(0, deleting=True, ends_at=NOW + 30)]
)
@pytest.mark.parametrize("stop", ASKED_TO_STOP)
@pytest.mark.parametrize("uid", [None, "of-a-former-pod"])
def test_a_launcher_that_was_told_of_no_host_waits_for_no_drain(
    first: Any, stop: dict[str, Any], uid: str
) -> None:
    """Stopped again just after it started: a worker that left an earlier list would be waited for for ever."""
    gone = {pod: left(pod, ago=20, uid=uid) for pod in pods(0, 1)}
    view = job(
        2,
        workers=(first, worker(1)),
        config=config([], hostfile=pods(0, 1), memory=Memory(left=gone)),
        **stop,
    )
    assert run(view, now=NOW)[0].launcher is None


def test_the_user_reads_why() -> None:
    assert "is suspended by annotation mpijob-elastic/suspend" in notes(ALONE)[0].message
    [gone, _] = notes(EMPTY)
    assert (gone.reason, gone.warning, removals(EMPTY)[0].grace) == ("WorkerSuspended", False, 1)
    queued = held(*GATES, names.GATE_QUEUED, queue=Queue(name="team"))
    assert does(queued, but="ask") == "nothing", (
        "all gates come off in one write, once quota is granted"
    )


def test_an_empty_list_forgets_its_hosts_and_the_size_that_was_waited_for() -> None:
    assert change(LISTED).script == "#!/bin/sh\n"
    assert change(LISTED).memory.hosts == {}
    timed = LISTED.but(scaling=TIMED)
    for view in (timed, timed.remembering(own=GROWN)):
        assert b'"asked":0' in change(view).memory.own["growth"]


def test_a_gated_launcher_is_no_driver_that_may_run() -> None:
    assert not held(*GATES).driver_may_run
    assert held().driver_may_run

"""The size 0 suspends a job whose user says so, whoever sets it, and another size resumes the job."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import suspend
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, SizeChange
from mpijob_elastic.model.pod import LauncherPhase, Probe
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    config,
    job,
    launcher,
    left,
    pending,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import does, notes
from tests.simulated_writes import run

GATES = (names.GATE_SUSPENDED,)
ZERO: dict[str, Any] = {"replicas": 0, "zero_suspends": True}
AT_ONCE = "say Suspended; delete launcher, suspended"


def to_zero(size: int, **facts: Any) -> Story:
    """A job that trains with that many workers, and whose size has become 0."""
    return job(size, **{**ZERO, **facts})


def sized(view: Story, replicas: int) -> Story:
    """The same job with this `Worker.replicas`."""
    facts = msgspec.structs.replace(view.facts, replicas=replicas)
    return view.but(facts=facts, replicas=replicas)


def stopped(
    *workers: Any,
    hosts: tuple[str, ...] = (),
    hostfile: tuple[str, ...] = pods(0),
    memory: Memory | None = None,
    **facts: Any,
) -> Story:
    """A job whose launcher went, so that the next one waits at the gate."""
    held = launcher(LauncherPhase.WAITING, gates=GATES, created_at=NOW - 60)
    published = config(hosts, hostfile=hostfile, memory=memory or Memory())
    made = {"launcher": held, "config": published, "role": role(0, 1, 2), **facts}
    return job(0, workers=workers, known=False, **made)


IDLE = Probe(busy_seen=True, idle_at=NOW, asked_at=NOW)
GONE: dict[str, Left] = {pod: left(pod, ago=3600) for pod in pods(1, 2)}
DRAINED = (
    to_zero(3, config=config(pods(0), memory=Memory(left=GONE)))
    .pod(1, probe=IDLE)
    .pod(2, probe=IDLE)
)
BEFORE = Memory(scale=SizeChange(before=0, after=3, at=LONG_AGO))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(to_zero(3), "publish 0 (Draining)", id="it shrinks first"),
        pytest.param(
            to_zero(3, min_np_workers=2), "publish 0 1 (Draining)", id="to what its driver needs"
        ),
        pytest.param(DRAINED, "delete 2:drained 1:drained; say Suspended", id="drained workers go"),
        pytest.param(DRAINED.without(1, 2), AT_ONCE, id="then the launcher"),
        pytest.param(to_zero(1), AT_ONCE, id="the last worker cannot drain"),
        pytest.param(
            stopped(worker(0), hosts=pods(0), **ZERO),
            "publish nobody (Draining)",
            id="then the list becomes empty",
        ),
        pytest.param(
            stopped(worker(0), **ZERO),
            "delete 0:suspended; say Suspended",
            id="and the last worker goes",
        ),
        pytest.param(
            to_zero(3, min_np_workers=3, config=config(pods(0))),
            AT_ONCE,
            id="nobody joins it",
        ),
        pytest.param(stopped(**ZERO), "say Suspended", id="the launcher waits"),
        pytest.param(
            stopped(**ZERO, hostfile=pods(0, 1, 2)),
            "hostfile 0",
            id="one without a gate would wait for a worker that nobody makes",
        ),
        pytest.param(
            stopped(**ZERO, role=role()),
            "allow 0; say Suspended",
            id="a Role without names, which allows exec into all pods, gets one",
        ),
        pytest.param(
            stopped(**{**ZERO, "zero_suspends": None, "notices": "Suspended: j", "hostfile": ()}),
            "say nothing more; ungate launcher",
            id="without the annotation 0 is no reason to wait",
        ),
        pytest.param(
            sized(stopped(pending(0, gates=GATES), pending(1, gates=GATES), zero_suspends=True), 2),
            "hostfile 0 1; ungate launcher 0 1",
            id="another size resumes it",
        ),
        pytest.param(
            sized(DRAINED, 3),
            "publish 0 1 2 (HostsPublished)",
            id="resumed at once, nothing is lost",
        ),
        pytest.param(
            to_zero(3, policy=Policy(min_replicas=2)),
            "publish 0 (Draining)",
            id="min-replicas keeps nobody",
        ),
        pytest.param(
            to_zero(3, elastic=False).launched(mounts_discovery=False),
            "say NotElastic",
            id="a plain job keeps its workers",
        ),
    ],
)
def test_what_is_done(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_it_ends_with_nothing_that_runs() -> None:
    view = run(to_zero(3), now=NOW)[0]
    assert (view.launcher, view.workers) == (None, ())


def test_the_user_reads_why_and_how_it_goes_on() -> None:
    note = notes(DRAINED.without(1, 2))[0]
    assert note.message.startswith("j is suspended by its size, 0")
    assert note.next_step == "mpijob-elastic resume j -n default"


@pytest.mark.parametrize(
    ("facts", "size"),
    [
        pytest.param({}, 1, id="nothing is known"),
        pytest.param({"policy": Policy(min_replicas=2)}, 2, id="the least size"),
        pytest.param({"memory": BEFORE}, 3, id="the last size that was published"),
        pytest.param(
            {"memory": BEFORE, "policy": Policy(min_replicas=4)}, 4, id="raised meanwhile"
        ),
        pytest.param({"memory": BEFORE, "sizes": (2, 4)}, 2, id="not allowed any more"),
        pytest.param(
            {"memory": BEFORE, "policy": Policy(max_replicas=2)}, 2, id="lowered meanwhile"
        ),
        pytest.param(
            {"memory": BEFORE, "sizes": (2, 8), "policy": Policy(min_replicas=4)},
            8,
            id="the smallest allowed size from the least on",
        ),
    ],
)
def test_the_size_before_is_remembered(facts: dict[str, Any], size: int) -> None:
    assert suspend.size_before(stopped(**ZERO, **facts)) == size


def test_a_pod_that_is_made_meanwhile_waits_at_the_gate() -> None:
    assert to_zero(3).facts.gates == GATES
    assert to_zero(3, zero_suspends=None).facts.gates == ()
    assert to_zero(3, size_known=False).facts.gates == ()
    assert to_zero(3, spec_elastic=False).facts.gates == ()

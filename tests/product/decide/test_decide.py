"""The whole policy put together: which steps come together, and which wait for one another."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.capabilities.autoscaling.facts import Scaling
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import LookIntoLauncher, Plan, ProbeWorkers, WriteSelector
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.pod import LauncherPhase, Probe
from mpijob_elastic.model.policy import Policy, Problem
from tests.builders import NOW, Story, config, failed, job, launcher, pods, ref, role, worker
from tests.counted import entered
from tests.product.decide.plans import does, note

HANDED_OVER: dict[str, Any] = {"foreign": "another operator's", "notices": "HandedOver: told"}
SHRUNK = job(2).shrunk(from_=3, ago=9)
SELECTOR = job(selector_due=True)
UNSIZED = "say SizeUnknown"
LINGERING = job().launched(phase=LauncherPhase.LINGERING, container="main", lingering=("proxy",))


def unsized(size: int = 2, **facts: Any) -> Story:
    """A job whose MPIJob does not say how many workers it wants."""
    return job(size, size_known=False, **facts)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(job(), "nothing", id="at rest"),
        pytest.param(job(replicas=2, deleting=True), "nothing", id="deleting"),
        pytest.param(job(replicas=2, **HANDED_OVER), "nothing", id="another operator's"),
        pytest.param(
            job(replicas=2, finished=True, deleting=True, clean_pod_policy="All"),
            "nothing",
            id="finished and deleting",
        ),
        pytest.param(job(replicas=2, finished=True), "nothing", id="finished"),
        pytest.param(
            job(replicas=2, launcher=launcher(LauncherPhase.FINISHED)),
            "nothing",
            id="its launcher ended",
        ),
        pytest.param(LINGERING, "say DriverEnded", id="a container outlives the driver"),
        pytest.param(LINGERING.plain(), "nothing", id="a container of a plain job does"),
        pytest.param(
            LINGERING.plain().but(policy=Policy(enabled=False)),
            "nothing",
            id="a container of a job that is left alone does",
        ),
        pytest.param(
            job(4, config=config(pods(0, 1, 2)), launcher=LINGERING.launcher),
            "say DriverEnded",
            id="a new worker, for no driver",
        ),
        pytest.param(
            job(3, workers=(worker(0), failed(1), worker(2)), launcher=LINGERING.launcher),
            "say DriverEnded",
            id="a failed worker, without a driver",
        ),
        pytest.param(
            job(3, replicas=2, launcher=LINGERING.launcher),
            "say DriverEnded",
            id="the size shrinks, without a driver",
        ),
        pytest.param(
            LINGERING.but(suspended_by="annotation"),
            "say Suspended; delete launcher, suspended",
            id="suspended, without a driver",
        ),
        pytest.param(job(replicas=2, config=None), "nothing", id="no ConfigMap"),
        pytest.param(job(replicas=2, role=None), "nothing", id="no Role"),
        pytest.param(job(replicas=2, workers=(), launcher=None), "nothing", id="no pod"),
        # Scale-out: Role first, the list when they are Ready, then the touch.
        pytest.param(job(3, replicas=4), "allow 0 1 2 3", id="the size grows"),
        pytest.param(
            job(4, config=config(pods(0, 1, 2))),
            "publish 0 1 2 3 (HostsPublished)",
            id="a new worker",
        ),
        pytest.param(job(known=False), "touch", id="a list that the launcher was not shown"),
        pytest.param(
            job(4, config=config(pods(0, 1, 2)), role=role(0, 1, 2)),
            "allow 0 1 2 3",
            id="no right to the new worker",
        ),
        # Scale-in: list, touch, look, delete.
        pytest.param(job(3, replicas=2), "publish 0 1 (Draining)", id="the size shrinks"),
        pytest.param(SHRUNK.unshown(), "touch", id="a list without a worker"),
        pytest.param(
            SHRUNK.pod(2, probe=Probe(asked_at=NOW - 3)),
            "remind of 2 by 0.r01 (HostListRepeated); probe 2; wake 51",
            id="it drains",
        ),
        pytest.param(SHRUNK.drained(2, after=8), "delete 2:drained", id="it has drained"),
        pytest.param(SHRUNK.without(2), "nothing", id="it is gone"),
        # What was scaled away while something else is due.
        pytest.param(
            job(3, replicas=4, workers=(worker(0), worker(1), failed(2))),
            "allow 0 1 2 3; publish 0 1, lost 2 (HostsLost)",
            id="a loss beside a new size",
        ),
        pytest.param(
            job(finished=True, replicas=1, clean_pod_policy="All"),
            "delete 2:finished 1:finished",
            id="to be cleaned",
        ),
        pytest.param(
            job(problems=(Problem(field="f", value="v", allowed="a"),)),
            "say InvalidAnnotation",
            id="a typing error",
        ),
        pytest.param(
            job(launcher=launcher(LauncherPhase.DELIVERING)).remembering(dropped_at=NOW - 60),
            "delete launcher",
            id="a launcher that waits for a worker scaled away",
        ),
        # Deletions do not wait for looks that may fail.
        pytest.param(
            job(2).shrunk(from_=4, ago=9).drained(2, after=8),
            "delete 2:drained; probe 3; wake 51",
            id="one of two has drained",
        ),
        pytest.param(SELECTOR, "restore selector", id="a status that lost its selector"),
        pytest.param(SELECTOR.but(reported=False), "nothing", id="no status yet"),
        pytest.param(SELECTOR.plain(), "nothing", id="no selector, not elastic"),
        pytest.param(SELECTOR.but(**HANDED_OVER), "nothing", id="no selector, another operator's"),
        pytest.param(SELECTOR.but(deleting=True), "nothing", id="no selector, being deleted"),
        pytest.param(SELECTOR.but(finished=True), "nothing", id="no selector, finished"),
        pytest.param(unsized(), UNSIZED, id="no size"),
        pytest.param(unsized(workers=(worker(0), failed(1))), UNSIZED, id="no size, failed"),
        pytest.param(unsized(config=config(pods(0, 1, 2))), UNSIZED, id="no size, surplus listed"),
        pytest.param(unsized(1, config=config(pods(0, 1, 2))), UNSIZED, id="no size, workers gone"),
        pytest.param(
            unsized(suspended_by="annotation"), "say Suspended SizeUnknown", id="no size, suspended"
        ),
        pytest.param(
            unsized(
                policy=Policy(min_replicas=1), scaling=Scaling(scale_timeout=1.0), queue=NO_QUEUE
            ),
            UNSIZED,
            id="no size, timeout",
        ),
        pytest.param(unsized(finished=True), "nothing", id="no size, ended"),
    ],
)
def test_the_steps(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_a_size_that_is_missing_is_told_once() -> None:
    told = note(unsized())
    assert told.line.startswith(
        "SizeUnknown: j is left as it is: spec.mpiReplicaSpecs.Worker.replicas: is missing"
    )
    assert does(unsized(notices=told.line)) == "nothing"


def test_the_selector_is_the_operators() -> None:
    write = WriteSelector(
        ref=ref("j"), selector="group-name=kubeflow.org,mpi-job-name=j,mpi-job-role=worker"
    )
    assert decide(SELECTOR, now=NOW) == Plan(actions=(write,))


@pytest.mark.parametrize("missing", [{"role": None}, {"config": None}])
def test_looks_go_on_while_the_operator_creates_what_is_missing(missing: dict[str, Any]) -> None:
    gone = Exec(pid=41, pod="j-worker-3", started_at=NOW - 600)
    held = HeldExecs(asked_at=NOW - 60, suspects=(gone,), frozen=(gone,))
    assert does(job(launcher=launcher(held=held), **missing), but="say") == "kill 41"
    tried = job(
        launcher=launcher(
            held=HeldExecs(asked_at=NOW - 60, suspects=(gone,), frozen=(gone,), tried_at=NOW - 60)
        )
    )
    assert any(
        isinstance(look, LookIntoLauncher) for look in decide(tried.but(**missing), now=NOW).looks
    )


def test_published_workers_are_probed_while_the_role_is_missing() -> None:
    assert [type(look) for look in decide(job(role=None), now=NOW).looks] == [ProbeWorkers]


MOST_CALLS = 221
MOST_FILES = 20
BUSY = Probe(busy_seen=True, busy_at=NOW - 1, asked_at=NOW - 1)
LOST = Probe(
    busy_seen=True, busy_at=NOW - 60, asked_at=NOW - 1, idle_at=NOW - 1, idle_since=NOW - 40
)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(job(), id="at rest"),
        pytest.param(
            job(workers=tuple(worker(index, probe=BUSY) for index in range(3))), id="training"
        ),
        pytest.param(job(config=config(pods(0, 1)), role=role(0, 1)), id="growing"),
        pytest.param(job(2).shrunk(from_=3, ago=5), id="draining"),
        pytest.param(job(2).shrunk(from_=3, ago=65), id="drained"),
        pytest.param(job(config=config(pods(0, 1))), id="joining"),
        pytest.param(job(replicas=2), id="shrinking"),
        pytest.param(
            job(workers=(worker(0, probe=BUSY), worker(1, probe=BUSY), worker(2, probe=LOST))),
            id="a rank lost",
        ),
        pytest.param(job(workers=(worker(0), worker(1), failed(2))), id="failed"),
        pytest.param(job().without(2), id="a pod gone"),
        pytest.param(
            job(workers=(worker(0), worker(1), worker(2, uid="new", created_at=NOW - 5))),
            id="a new pod",
        ),
    ],
)
def test_a_decision_for_three_workers_stays_short(view: Story) -> None:
    """A newcomer who follows a decision reads that many functions in that many files."""
    decide(view, now=NOW)  # the caches keep objects from look to look, and what was read of them
    files = entered(lambda: decide(replace(view), now=NOW))
    assert len(files) <= MOST_CALLS
    assert len(set(files)) <= MOST_FILES


def test_a_capability_adds_few_calls() -> None:
    view = job().pod(2, disruption="taint", node="n")
    decide(view, now=NOW)
    files = entered(lambda: decide(replace(view), now=NOW))
    assert len(files) <= MOST_CALLS + 10
    assert len(set(files)) <= MOST_FILES + 3, (
        "its folder, its wishes, the mechanism, and words for a list"
    )

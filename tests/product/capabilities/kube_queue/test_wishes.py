"""A job that another queue holds: the QueueUnit of KubeQueue, and a job that MultiKueue sends to another cluster."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue.facts import QueueUnit
from mpijob_elastic.capabilities.kube_queue.wishes import CreateUnit
from mpijob_elastic.capabilities.kueue.facts import Workload
from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import LauncherPhase
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, Story, but, config, job, launcher, left, pending, pods, worker
from tests.product.capabilities.kube_queue.units import OWNERS, SUSPENDED, held, queued, unit
from tests.product.decide.plans import does, note, notes
from tests.queues import granted, queue, waiting, workload
from tests.simulated_writes import run

WAITING, GRANTED = ("", "Enqueued", "Reserved", "SchedReady"), ("Dequeued", "SchedSucceed")
OVER = ("Running", "TimeoutBackoff", "Preempted", "Succeed", "Failed")
STARTING: dict[str, Any] = {
    "workers": (pending(0), pending(1)),
    "launcher": launcher(LauncherPhase.WAITING),
}
BY_USER = "annotation mpijob-elastic/suspend"
RIVAL = "QueueUnit own"


def running(found: QueueUnit | None = None, **facts: Any) -> Story:
    return job(2, **{"kube_queue": queued(found), **facts})


def ended(policy: str, **facts: Any) -> Story:
    about = {"launcher": launcher(LauncherPhase.FINISHED), **facts}
    return running(unit("Running"), finished=True, clean_pod_policy=policy, **about)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(held(), "ask unit of 2: 1 like launcher and 2 like 0", id="all pods wait"),
        pytest.param(
            held(workers=(), replicas=0), "ask unit of 0: 1 like launcher", id="without workers"
        ),
        pytest.param(
            held(workers=(), replicas=0, policy=Policy(zero_suspends=True)),
            "nothing",
            id="its user has it at zero",
        ),
        pytest.param(held(launcher=None), "nothing", id="no launcher yet"),
        pytest.param(held(workers=()), "nothing", id="no workers yet"),
        pytest.param(
            held(workers=(pending(0, gates=SUSPENDED), worker(1))), "nothing", id="a worker runs"
        ),
        pytest.param(held(launcher=launcher()), "nothing", id="the launcher runs"),
        pytest.param(held(suspended_by=BY_USER), "nothing", id="suspended by its user"),
        pytest.param(held(kube_queue=queued(None, RIVAL)), "nothing", id="another queue has it"),
        pytest.param(held(deleting=True), "nothing", id="being deleted"),
        pytest.param(
            held(foreign="another operator manages it"), "nothing", id="another operator's"
        ),
        pytest.param(held(finished=True), "nothing", id="ended while it waits"),
        pytest.param(held(kube_queue=None), "nothing", id="no KubeQueue"),
        pytest.param(running(), "nothing", id="it runs already"),
        *(pytest.param(held(unit(phase)), "nothing", id=f"{phase}: it waits") for phase in WAITING),
        *(
            pytest.param(held(unit(phase)), "release job", id=f"{phase}: its turn")
            for phase in GRANTED
        ),
        *(
            pytest.param(held(unit(phase)), "withdraw unit", id=f"{phase}: it has stopped")
            for phase in OVER
        ),
        *(
            pytest.param(
                held(unit(phase, workers=3)), "withdraw unit", id=f"{phase}: for another size"
            )
            for phase in WAITING + GRANTED + OVER
        ),
        *(
            pytest.param(running(unit(phase)), "mark unit running", id=f"{phase}: it runs")
            for phase in WAITING + GRANTED
        ),
        *(
            pytest.param(
                running(unit(phase), launcher=STARTING["launcher"]),
                "nothing",
                id=f"{phase}: it starts",
            )
            for phase in WAITING + GRANTED
        ),
        pytest.param(running(unit("Running")), "nothing", id="said already"),
        # Of a deleted job it stays until the pods that own it are gone, and these may be others by
        # then.
        pytest.param(
            running(unit("Running", pods=("old", OWNERS[1]))), "adopt unit", id="another launcher"
        ),
        pytest.param(
            running(unit("Running", pods=(OWNERS[0], "old"))),
            "adopt unit",
            id="another first worker",
        ),
        pytest.param(
            held(unit("Running", pods=()), **STARTING), "adopt unit", id="others, and held again"
        ),
        pytest.param(held(unit(pods=())), "nothing", id="others, and nothing runs"),
        pytest.param(
            running(unit("Running", pods=()), deleting=True),
            "nothing",
            id="others, and being deleted",
        ),
        pytest.param(
            running(unit("Running", pods=()), kube_queue=queued(unit("Running", pods=()), RIVAL)),
            "withdraw unit",
            id="others, and a rival has it",
        ),
        # Its unit says Running while something may run, so that it goes when nothing does.
        pytest.param(
            held(unit("Dequeued"), **STARTING), "mark unit running", id="held again while it starts"
        ),
        pytest.param(held(unit(), **STARTING), "nothing", id="held again, and waits"),
        pytest.param(held(unit("Running"), **STARTING), "nothing", id="held again, and marked"),
        *(
            pytest.param(running(unit(phase), **facts), plan, id=f"{phase}: wanted back {facts}")
            for phase in ("TimeoutBackoff", "Preempted")
            for facts, plan in (
                ({}, "hold job"),
                ({"held_in_queue": True}, "nothing"),
                ({"suspended_by": BY_USER}, "hold job"),
            )
        ),
        pytest.param(
            held(unit("Preempted"), suspended_by=BY_USER, held_in_queue=True),
            "withdraw unit",
            id="suspended as well",
        ),
        pytest.param(ended("None"), "withdraw unit", id="ended, its pods may stay"),
        pytest.param(ended("Running"), "nothing", id="ended, running pods are to go"),
        pytest.param(ended("All"), "nothing", id="ended, all pods are to go"),
        *(
            pytest.param(
                ended(policy, workers=(), launcher=None),
                "withdraw unit",
                id=f"ended, gone: {policy}",
            )
            for policy in ("None", "Running", "All")
        ),
        pytest.param(
            held(unit(), kube_queue=queued(unit(), RIVAL)), "withdraw unit", id="a rival has it"
        ),
    ],
)
def test_what_is_done_about_the_unit(view: JobView, plan: str) -> None:
    assert does(view, but="say publish delete touch wake") == plan


def test_the_unit_has_the_name_and_the_parts_of_the_job() -> None:
    [asked] = [
        action for action in decide(held(), now=NOW).actions if isinstance(action, CreateUnit)
    ]
    assert isinstance(asked, CreateUnit)
    assert (asked.name, [part.name for part in asked.pods]) == ("j-mpi-qu", ["launcher", "workers"])


@pytest.mark.parametrize(
    ("view", "line"),
    [
        *(
            (
                held(unit(phase)),
                f"Enqueued: j waits in KubeQueue: QueueUnit j-mpi-qu is {phase or 'Enqueued'}",
            )
            for phase in WAITING
        ),
        *(
            (held(unit(phase)), f"Dequeued: j is released: QueueUnit j-mpi-qu is {phase}")
            for phase in GRANTED
        ),
        *(
            (
                running(unit(phase, said="no pod after 10m")),
                f"QuotaWanted: j stops: QueueUnit j-mpi-qu is {phase}: no pod after 10m",
            )
            for phase in ("TimeoutBackoff", "Preempted")
        ),
    ],
)
def test_the_user_reads_what_the_queue_says(view: JobView, line: str) -> None:
    assert line in [note.line for note in (*notes(view), *told(view))]
    assert bool(waiting_unit(view)) is line.startswith("Enqueued")


def told(view: JobView) -> list[Note]:
    """What KubeQueue makes the job say."""
    found = view.of(KubeQueue)
    return list(found.notes(derive(view, now=NOW))) if found else []


def waiting_unit(view: JobView) -> QueueUnit | None:
    found = view.of(KubeQueue)
    return found.waiting(derive(view, now=NOW)) if found else None


def test_a_rival_is_told() -> None:
    [note] = told(held(kube_queue=queued(None, RIVAL, "queue team of Kueue")))
    assert (note.reason, note.warning) == ("KubeQueueYields", True)
    assert "QueueUnit own, queue team of Kueue queues it already" in note.message
    assert not told(running(kube_queue=queued(None, RIVAL)))


@pytest.mark.parametrize(
    "view", [running(unit()), held(unit("Dequeued")), held(unit(), finished=True)]
)
def test_who_does_not_wait_is_told_nothing(view: JobView) -> None:
    assert waiting_unit(view) is None
    assert "Enqueued" not in [note.reason for note in notes(view)]


def sent(*found: Workload, name: str = "team", **facts: Any) -> JobView:
    """A job of four that MultiKueue runs in another cluster, or has sent to this one; no pod of it has started."""
    view = waiting(4)
    return view.but(queue=queue(*found, name=name, **facts))


BASE = granted(ready=True)
COPY = msgspec.structs.replace(BASE, metadata=msgspec.structs.replace(BASE.metadata, job_uid=""))
RUNS = "start launcher 0 1; ask 2: 1 like 2, priority -1; ask 3: 1 like 3, priority -2"


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(
            sent(elsewhere=True), "ask launcher: 1 like launcher and 4 like 0", id="created here"
        ),
        pytest.param(sent(BASE, elsewhere=True), "nothing", id="it runs elsewhere"),
        pytest.param(sent(BASE, name="", elsewhere=True), "nothing", id="its label is gone"),
        pytest.param(
            sent(granted(evicted=True), elsewhere=True),
            "give back launcher",
            id="its quota is wanted back",
        ),
        pytest.param(sent(prebuilt=True), "nothing", id="here its Workload comes with it"),
        pytest.param(sent(COPY, prebuilt=True), "adopt launcher", id="the copy of its Workload"),
        pytest.param(sent(BASE, prebuilt=True), RUNS, id="that is adopted"),
        pytest.param(
            but(sent(BASE, prebuilt=True), suspended_by="you"), "nothing", id="suspended here"
        ),
        pytest.param(
            but(sent(BASE), suspended_by="you"),
            "withdraw launcher",
            id="suspended where it is queued",
        ),
    ],
)
def test_a_job_of_multikueue(view: JobView, plan: str) -> None:
    assert does(view, but="say hostfile") == plan


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (granted(cluster="east"), "runs in cluster east; edit it there"),
        (
            workload(said="no\nquota"),
            "runs in the cluster that MultiKueue will choose (no quota); edit",
        ),
    ],
)
def test_the_user_is_told_once_where_it_runs(found: Workload, said: str) -> None:
    view = sent(found, elsewhere=True)
    assert said in note(view).message
    assert notes(but(view, notices=note(view).line)) == []


def test_a_launcher_that_was_told_of_no_host_waits_for_no_drain() -> None:
    """Held again just after it started: a worker that left an earlier list would be waited for for ever."""
    gone = {pod: left(pod, ago=20) for pod in pods(0, 1)}
    listed = config([], hostfile=pods(0, 1), memory=Memory(left=gone))
    view = job(
        2,
        workers=(pending(0), worker(1)),
        config=listed,
        held_in_queue=True,
        kube_queue=queued(unit()),
    )
    assert run(view, now=NOW)[0].launcher is None

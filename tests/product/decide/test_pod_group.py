"""The PodGroup that a gang scheduler waits for."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, pod_group
from mpijob_elastic.decide.actions import (
    DeleteLauncher,
    DeleteWorkers,
    LowerPodGroup,
    MakePodGroup,
    TunePodGroup,
    Ungate,
)
from mpijob_elastic.model.gang import TOGETHER, Gang
from mpijob_elastic.model.job import JobView, LauncherPhase, PodGroup
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, job, launcher, ref, worker
from tests.simulated_writes import run

WAITS = launcher(LauncherPhase.WAITING)
KUBERNETES = Gang(scheduler="kubernetes")
MATCH = "gang.scheduling.koordinator.sh/match-policy"
VOLCANO = Gang(scheduler="volcano", queue="team", annotations={"volcano.sh/task-topology-task-order": "worker"})


def grouped(size: int, member: int | None, *, least: int | None = None, **facts: Any) -> JobView:
    """A job of that size with a PodGroup of that minMember."""
    group = None if member is None else PodGroup(ref=ref("j"), min_member=member, queue="default")
    return job(size, pod_group=group, policy=Policy(min_replicas=least), **facts)


def asking(size: int, member: int | None = None, *, least: int | None = None, **facts: Any) -> JobView:
    """A job that asks for a gang, in a cluster that serves PodGroups."""
    return grouped(size, member, least=least, **{"gang": VOLCANO, "serves_gangs": True, **facts})


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (grouped(4, 5, least=2), 3),
        (grouped(4, 3, least=2), None),
        (grouped(4, 2, least=2), None),
        (grouped(6, 5), None),
        (grouped(4, 5), None),
        (grouped(2, 5), 3),
        (grouped(1, 5, least=2), 2),
        (grouped(2, 5, elastic=False), None),
        (grouped(4, None, least=2), None),
        # Until training starts it takes the workers that horovodrun's -np waits for.
        (grouped(4, 5, least=2, np_workers=3, launcher=WAITS), 4),
        (grouped(4, 5, least=2, np_workers=3), 3),
        (grouped(4, 5, least=2, np_workers=9, launcher=WAITS), None),
    ],
)
def test_it_is_lowered_to_what_is_needed_and_never_raised(view: JobView, expected: int | None) -> None:
    action = pod_group.write(view)
    assert isinstance(action, LowerPodGroup | None)
    assert (action.after if action else None) == expected
    assert action is None or action.note.reason == "PodGroupLowered"


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (asking(4), 5),
        (asking(4, least=2), 3),
        (asking(4, least=2, np_workers=3, launcher=WAITS), 4),
        (asking(4, least=2, elastic=False), 5),
        (asking(4, gang=None), None),
        (asking(4, serves_gangs=None), None),
        (asking(4, serves_gangs=False), None),
    ],
)
def test_it_is_made_for_a_job_that_asks(view: JobView, expected: int | None) -> None:
    action = pod_group.write(view)
    assert isinstance(action, MakePodGroup | None)
    assert (action.min_member if action else None) == expected


def test_it_is_made_before_the_job_has_any_other_object() -> None:
    view = asking(2, workers=(), launcher=None, config=None, role=None)
    [action] = decide(view, now=NOW).actions
    assert isinstance(action, MakePodGroup)
    assert action.note.message == "PodGroup j: the pods start together, 3 at least in queue team"


def test_one_of_the_operator_gets_the_queue_and_the_topology_of_the_job() -> None:
    view, done, _ = run(asking(4, 5, least=2), now=NOW)
    assert [type(action) for action in done] == [LowerPodGroup, TunePodGroup]
    assert view.pod_group == PodGroup(ref=ref("j"), min_member=3, queue="team", annotations=VOLCANO.annotations)


def of_koordinator(policy: str = "waiting-and-running", **facts: Any) -> JobView:
    """A job of four, two at least, with a PodGroup of Koordinator that has this policy."""
    gang = Gang(scheduler="koordinator", annotations=TOGETHER)
    group = PodGroup(ref=ref("j"), min_member=3, queue="", annotations={MATCH: policy})
    return replace(asking(4, least=2, gang=gang, **facts), pod_group=group)


@pytest.mark.parametrize(
    ("view", "policy"),
    [
        (of_koordinator(), "once-satisfied"),
        (of_koordinator("once-satisfied"), None),
        (of_koordinator("once-satisfied", launcher=WAITS), "waiting-and-running"),
        (of_koordinator("once-satisfied", launcher=None), "waiting-and-running"),
        (of_koordinator(launcher=WAITS), None),
        (of_koordinator("only-waiting"), None),
    ],
)
def test_koordinator_starts_pods_together_until_training_runs(view: JobView, policy: str | None) -> None:
    action = pod_group.write(view)
    assert isinstance(action, TunePodGroup | None)
    assert (action.annotations if action else None) == (policy and {MATCH: policy})


def test_a_job_that_is_resumed_is_a_gang_before_its_pods_may_start() -> None:
    gates = ("mpijob-elastic/suspended",)
    workers = tuple(worker(index, running=False, ready_at=None, gates=gates) for index in range(4))
    resumed = of_koordinator("once-satisfied", workers=workers, launcher=launcher(LauncherPhase.WAITING, gates=gates))
    regrouped, lifted = decide(resumed, now=NOW).actions
    assert isinstance(regrouped, TunePodGroup)
    assert isinstance(lifted, Ungate)


@pytest.mark.parametrize(
    ("policy", "facts", "again"),
    [
        ("once-satisfied", {}, True),
        ("once-satisfied", {"created_at": NOW - 20}, False),
        ("once-satisfied", {"node": "n"}, False),
        ("once-satisfied", {"grouped": False}, False),
        ("only-waiting", {}, False),
    ],
)
def test_a_worker_that_koordinator_may_have_forgotten_is_made_again(
    policy: str, facts: dict[str, Any], again: bool
) -> None:
    """It waited when the gang started; one that was made later is tried like any other pod."""
    pending = worker(3, **{"running": False, "ready_at": None, "node": "", "created_at": NOW - 90, **facts})
    runs = launcher(started_at=NOW - 60)
    view = of_koordinator(policy, launcher=runs, workers=(worker(0), worker(1), worker(2), pending))
    _, done, _ = run(view, now=NOW)
    removals = [removal for action in done if isinstance(action, DeleteWorkers) for removal in action.removals]
    assert [removal.worker.name for removal in removals if removal.worker.index == 3] == (["j-worker-3"] * again)


@pytest.mark.parametrize(
    ("bound", "facts", "again"),
    [(3, {}, True), (2, {}, False), (3, {"node": "n"}, False), (3, {"grouped": False}, False)],
)
def test_a_launcher_that_koordinator_left_out_is_made_again(bound: int, facts: dict[str, Any], again: bool) -> None:
    """It started as many workers as it was to start pods."""
    waits = launcher(LauncherPhase.WAITING, **{"node": "", "created_at": NOW - 60, **facts})
    pending: dict[str, Any] = {"running": False, "ready_at": None, "node": "", "created_at": NOW - 60}
    workers = (
        *(worker(index, node="n") for index in range(bound)),
        *(worker(index, **pending) for index in range(bound, 4)),
    )
    _, done, _ = run(of_koordinator(launcher=waits, workers=workers), now=NOW)
    said = [action.note.message for action in done if isinstance(action, DeleteLauncher)]
    assert ["left out when its gang started" in message for message in said] == [True] * again


def test_without_a_queue_the_one_that_it_has_stays() -> None:
    assert pod_group.write(asking(4, 5, gang=Gang(scheduler="volcano"))) is None


def test_of_kubernetes_it_is_lowered_in_the_words_of_kubernetes() -> None:
    action = pod_group.write(asking(2, 5, gang=KUBERNETES))
    assert isinstance(action, LowerPodGroup)
    assert action.note.message == "PodGroup j: minCount 5 → 3, so that the job needs fewer workers"


def test_where_kubernetes_serves_none_it_names_the_gates() -> None:
    [note] = pod_group.notes(asking(2, gang=KUBERNETES, serves_gangs=False))
    assert note.reason == "GangUnavailable"
    assert "its pods start one by one. Kubernetes 1.36 serves them with the gates GenericWorkload and" in note.message


@pytest.mark.parametrize(
    ("view", "reasons"),
    [
        (asking(2), []),
        (asking(2, serves_gangs=None), []),
        (asking(2, serves_gangs=False), ["GangUnavailable"]),
        (asking(2, workers=(worker(0), worker(1, grouped=False))), ["GangMissed"]),
        (asking(2, workers=(worker(0), worker(1, grouped=False, deleting=True))), []),
        (asking(2, launcher=launcher(grouped=False)), ["GangMissed"]),
    ],
)
def test_a_gang_that_is_none_is_told(view: JobView, reasons: list[str]) -> None:
    assert [note.reason for note in pod_group.notes(view)] == reasons

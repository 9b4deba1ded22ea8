"""The PodGroup that a gang scheduler waits for."""

from typing import Any, TypeVar

import pytest

from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs.facts import (
    KUBERNETES_POD_GROUPS,
    KUBERNETES_POD_GROUPS_OF_1_36,
    TOGETHER,
    Gang,
    PodGroup,
)
from mpijob_elastic.capabilities.gangs.wishes import LowerPodGroup, MakePodGroup, TunePodGroup
from mpijob_elastic.decide import derive
from mpijob_elastic.decide.actions import Action, Note, Object
from mpijob_elastic.decide.step import When
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, Story, job, launcher, pending, ref, worker
from tests.product.decide.plans import does, note
from tests.simulated_writes import run

WAITS = launcher(LauncherPhase.WAITING)
GATES = ("mpijob-elastic/suspended",)
KUBERNETES = Gang(scheduler="kubernetes", priority_class="low")
WORKERS_ONLY = Gang(scheduler="kubernetes", with_launcher=False)
IN_1_36 = KUBERNETES_POD_GROUPS_OF_1_36
MATCH = "gang.scheduling.koordinator.sh/match-policy"
VOLCANO = Gang(
    scheduler="volcano", queue="team", annotations={"volcano.sh/task-topology-task-order": "worker"}
)
TOPOLOGY = "tune gang team worker"


def grouped(size: int, member: int | None, *, least: int | None = None, **facts: Any) -> Story:
    """A job of that size with a PodGroup of that minMember."""
    group = (
        None if member is None else PodGroup(metadata=ref("j"), min_member=member, queue="default")
    )
    return job(size, pod_group=group, policy=Policy(min_replicas=least), **facts)


def asking(
    size: int, member: int | None = None, *, least: int | None = None, **facts: Any
) -> Story:
    """A job that asks for a gang, in a cluster that serves PodGroups."""
    return grouped(size, member, least=least, **{"gang": VOLCANO, "serves_gangs": True, **facts})


def in_team(**annotations: str) -> PodGroup:
    """A PodGroup in the queue of the job, with these annotations."""
    return PodGroup(metadata=ref("j"), min_member=3, queue="team", annotations=annotations)


def of_koordinator(policy: str = "waiting-and-running", **facts: Any) -> Story:
    """A job of four, two at least, with a PodGroup of Koordinator that has this policy."""
    gang = Gang(scheduler="koordinator", annotations=TOGETHER)
    group = PodGroup(metadata=ref("j"), min_member=3, queue="", annotations={MATCH: policy})
    return asking(4, least=2, gang=gang, **facts).but(pod_group=group)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(grouped(4, 5, least=2), "lower gang 5 to 3", id="more than its least size"),
        pytest.param(grouped(4, 3, least=2), "nothing", id="just its least size"),
        pytest.param(grouped(4, 2, least=2), "nothing", id="never raised"),
        pytest.param(grouped(6, 5), "nothing", id="less than its size"),
        pytest.param(grouped(4, 5), "nothing", id="just its size"),
        pytest.param(grouped(2, 5), "lower gang 5 to 3", id="more than its size"),
        pytest.param(grouped(1, 5, least=2), "lower gang 5 to 2", id="a size below the least"),
        pytest.param(grouped(2, 5, elastic=False), "nothing", id="not elastic"),
        pytest.param(grouped(4, None, least=2), "nothing", id="no group"),
        # Until training starts it takes the workers that horovodrun's -np waits for.
        pytest.param(
            grouped(4, 5, least=2, np_workers=3, launcher=WAITS),
            "lower gang 5 to 4",
            id="-np at the start",
        ),
        pytest.param(
            grouped(4, 5, least=2, np_workers=3), "lower gang 5 to 3", id="-np of a job that trains"
        ),
        pytest.param(
            grouped(4, 5, least=2, np_workers=9, launcher=WAITS), "nothing", id="-np above the size"
        ),
        pytest.param(
            asking(4, least=2, unread_options=frozenset({"np"}), launcher=WAITS),
            "make gang of 5",
            id="-np that cannot be read",
        ),
        pytest.param(
            grouped(4, 5, least=2, unread_options=frozenset({"np"})),
            "lower gang 5 to 3",
            id="that -np once the job trains",
        ),
        pytest.param(asking(4), "make gang of 5", id="asked for"),
        pytest.param(asking(4, least=2), "make gang of 3", id="asked for with a least size"),
        pytest.param(
            asking(4, least=2, np_workers=3, launcher=WAITS),
            "make gang of 4",
            id="asked for with -np",
        ),
        pytest.param(
            asking(4, least=2, elastic=False), "make gang of 5", id="asked for by a plain job"
        ),
        pytest.param(asking(4, gang=None), "nothing", id="not asked for"),
        pytest.param(asking(4, serves_gangs=None), "nothing", id="not known if there are any"),
        pytest.param(asking(4, serves_gangs=False), "nothing", id="there are none"),
        pytest.param(
            asking(2, workers=(), launcher=None, config=None, role=None),
            "make gang of 3",
            id="before anything else",
        ),
        pytest.param(
            asking(4, 5, least=2), "lower gang 5 to 3", id="of the operator, lowered first"
        ),
        pytest.param(asking(4, 3, least=2), TOPOLOGY, id="then with queue and topology of the job"),
        pytest.param(
            asking(4, least=2).but(pod_group=in_team()), TOPOLOGY, id="its queue, no topology yet"
        ),
        pytest.param(
            asking(4, least=2).but(pod_group=in_team(**VOLCANO.annotations)),
            "nothing",
            id="its queue and its topology",
        ),
        pytest.param(asking(2, 5, gang=KUBERNETES), "lower gang 5 to 3", id="of kubernetes"),
        pytest.param(
            asking(2, 5, gang=KUBERNETES, group_resource=IN_1_36),
            "nothing",
            id="of kubernetes 1.36, which cannot change",
        ),
        pytest.param(
            asking(4, least=2, gang=WORKERS_ONLY), "make gang of 2", id="without the launcher"
        ),
        pytest.param(
            asking(4, 4, least=2, gang=WORKERS_ONLY),
            "lower gang 4 to 2",
            id="without the launcher, lowered",
        ),
        pytest.param(
            asking(4, 5, gang=Gang(scheduler="volcano")), "nothing", id="its own queue stays"
        ),
        # Koordinator starts pods together until training runs.
        pytest.param(of_koordinator(), "tune gang once-satisfied", id="koordinator, it trains"),
        pytest.param(of_koordinator("once-satisfied"), "nothing", id="koordinator, said"),
        pytest.param(
            of_koordinator("once-satisfied", launcher=WAITS),
            "tune gang waiting-and-running",
            id="koordinator, starts",
        ),
        pytest.param(
            of_koordinator("once-satisfied", launcher=None),
            "tune gang waiting-and-running",
            id="koordinator, no launcher",
        ),
        pytest.param(of_koordinator(launcher=WAITS), "nothing", id="koordinator, starts, said"),
        pytest.param(
            of_koordinator("only-waiting"), "nothing", id="koordinator, a policy of its user"
        ),
        pytest.param(
            of_koordinator(
                "once-satisfied",
                workers=tuple(pending(index, gates=GATES) for index in range(4)),
                launcher=launcher(LauncherPhase.WAITING, gates=GATES),
            ),
            "tune gang waiting-and-running; ungate launcher 0 1 2 3",
            id="koordinator, a gang before its pods may start again",
        ),
    ],
)
def test_the_group(view: JobView, plan: str) -> None:
    assert does(view, but="say publish hostfile allow") == plan


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            asking(2, workers=(), launcher=None),
            "PodGroup j: the pods start together, 3 at least in queue team",
        ),
        (asking(2, 5), "PodGroup j: minMember 5 → 3, so that the job needs fewer workers"),
        (
            asking(2, 5, gang=KUBERNETES),
            "PodGroup j: minCount 5 → 3, so that the job needs fewer workers",
        ),
    ],
)
def test_the_user_reads_why(view: JobView, message: str) -> None:
    assert note(view).message == message


def test_one_of_the_operator_gets_the_queue_and_the_topology_of_the_job() -> None:
    view, done, _ = run(asking(4, 5, least=2), now=NOW)
    assert isinstance(done[-1], TunePodGroup)
    assert view.of(Gangs).group == PodGroup(
        metadata=ref("j"), min_member=3, queue="team", annotations=VOLCANO.annotations
    )


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
    left_out = pending(3, **{"node": "", "created_at": NOW - 90, **facts})
    runs = launcher(started_at=NOW - 60)
    view = of_koordinator(
        policy, launcher=runs, workers=(worker(0), worker(1), worker(2), left_out)
    )
    _, done, _ = run(view, now=NOW)
    removals = [one.worker.index for action in done for one in getattr(action, "removals", ())]
    assert (3 in removals) is again


@pytest.mark.parametrize(
    ("bound", "facts", "again"),
    [(3, {}, True), (2, {}, False), (3, {"node": "n"}, False), (3, {"grouped": False}, False)],
)
def test_a_launcher_that_koordinator_left_out_is_made_again(
    bound: int, facts: dict[str, Any], again: bool
) -> None:
    """It started as many workers as it was to start pods."""
    made_at = NOW - 60
    waits = launcher(LauncherPhase.WAITING, **{"node": "", "created_at": made_at, **facts})
    start, rest = range(bound), range(bound, 4)
    workers = (
        *(worker(one, node="n") for one in start),
        *(pending(one, node="", created_at=made_at) for one in rest),
    )
    _, done, _ = run(of_koordinator(launcher=waits, workers=workers), now=NOW)
    assert any("left out when its gang started" in str(action) for action in done) is again


W = TypeVar("W", bound=Action)


def writes(view: JobView, kind: type[W]) -> list[W]:
    """The writes of this kind that the gang makes before its pods start."""
    gangs, state = view.of(Gangs), derive(view, now=NOW)
    assert gangs
    steps = gangs.writes(state, When.BEFORE_START)
    return [step.write for step in steps if isinstance(step.write, kind)]


def told(view: JobView) -> list[Note]:
    """What the gang makes the job say."""
    gangs = view.of(Gangs)
    return list(gangs.notes(derive(view, now=NOW))) if gangs else []


def test_where_kubernetes_serves_none_it_names_the_gates() -> None:
    [note_] = told(asking(2, gang=KUBERNETES, serves_gangs=False))
    assert note_.message == (
        "j asks for a gang, but the cluster serves no PodGroups of kubernetes: its pods start one "
        "by one. Kubernetes 1.37 serves them with the gate GenericWorkload and "
        "--runtime-config=scheduling.k8s.io/v1beta1=true; 1.36 with the gates GenericWorkload and "
        "GangScheduling and --runtime-config=scheduling.k8s.io/v1alpha2=true"
    )


@pytest.mark.parametrize(
    ("resource", "made", "lowered"),
    [
        (
            KUBERNETES_POD_GROUPS,
            {"schedulingPolicy": {"gang": {"minCount": 5}}, "priorityClassName": "low"},
            {"schedulingPolicy": {"gang": {"minCount": 3}}},
        ),
        (IN_1_36, {"schedulingPolicy": {"gang": {"minCount": 5}}}, None),
    ],
    ids=["1.37", "1.36"],
)
def test_a_pod_group_of_kubernetes_is_written_as_the_version_knows_it(
    resource: Resource, made: Object, lowered: Object | None
) -> None:
    """Its priority is that of the pods, and [v1.36.3] drops or refuses it."""
    asks: dict[str, Any] = {"gang": KUBERNETES, "group_resource": resource}
    [make] = writes(asking(4, **asks), MakePodGroup)
    assert (make.resource, make.content()["spec"]) == (resource, made)
    lower = writes(asking(2, 5, **asks), LowerPodGroup)
    assert [(each.resource, each.change()["spec"]) for each in lower] == (
        [(resource, lowered)] if lowered else []
    )


@pytest.mark.parametrize(
    ("view", "said"),
    [
        pytest.param(
            asking(4, workers=(worker(0), pending(1, node="", created_at=NOW)), gang=KUBERNETES),
            "waits for its gang: the scheduler has not tried it yet. It tries the gang once PodGroup "
            "j exists and as many of the job's pods as the PodGroup counts; 3 exist, and the job "
            "asks for 5",
            id="nothing said",
        ),
        pytest.param(
            asking(2, workers=(worker(0), pending(1, node="n")), gang=KUBERNETES), "", id="a node"
        ),
        pytest.param(
            asking(2, workers=(worker(0), pending(1, node="", grouped=False)), gang=KUBERNETES),
            "",
            id="outside the gang",
        ),
        pytest.param(
            asking(2, workers=(worker(0), pending(1, node="", gates=GATES)), gang=KUBERNETES),
            "",
            id="held back",
        ),
    ],
)
def test_why_the_scheduler_has_not_tried_a_pod(view: JobView, said: str) -> None:
    gangs = view.of(Gangs)
    assert gangs
    assert gangs.pod_words(view, view.workers[1]).waits == said


@pytest.mark.parametrize(
    ("view", "reasons"),
    [
        (asking(2), []),
        (asking(2, serves_gangs=None), []),
        (asking(2, serves_gangs=False), ["GangUnavailable"]),
        (asking(2, workers=(worker(0), worker(1, grouped=False))), ["GangMissed"]),
        (asking(2, workers=(worker(0), worker(1, grouped=False, deleting=True))), []),
        (asking(2, launcher=launcher(grouped=False)), ["GangMissed"]),
        (asking(2, 4, gang=KUBERNETES, group_resource=IN_1_36), ["GangUnchanged"]),
        (asking(2, 4, gang=KUBERNETES), []),
        (asking(2, gang=WORKERS_ONLY, launcher=launcher(grouped=False)), []),
        (asking(2, 3, gang=KUBERNETES), []),
        (asking(2, 4), []),
    ],
)
def test_a_gang_that_is_none_is_told(view: JobView, reasons: list[str]) -> None:
    assert [note.reason for note in told(view)] == reasons

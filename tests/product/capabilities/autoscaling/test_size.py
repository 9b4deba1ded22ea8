"""Who changes the size of a job: one that takes what lies idle, a scale-out that fails, and its HPA."""

from typing import Any

import pytest

from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling import size
from mpijob_elastic.capabilities.autoscaling.autoscaler import (
    Autoscaler,
    ChangeAutoscaler,
    MakeAutoscaler,
)
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling, Tolerance
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE, Queue
from mpijob_elastic.decide import capability, decide, derive
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.memory import Memory, SizeChange
from mpijob_elastic.model.pod import LauncherPhase, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    job,
    launcher,
    pending,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import change, does, note, notes
from tests.queues import GATES, granted, queue, workload
from tests.rooms.autoscaling import grown as sizes

BESIDE = "say wake publish hostfile remember"
DELIVERING = launcher(LauncherPhase.DELIVERING)
LONG, JUST = NOW - 30, NOW - 5
BOUNDED, FILLS = Policy(min_replicas=2, max_replicas=5), Scaling(autoscale=Autoscale(fill=True))
CPU = Autoscale(value=70)
WIDE, SCALED = Policy(min_replicas=2, max_replicas=8), Scaling(autoscale=CPU)
SPEC = autoscale.spec(CPU, "j", least=2, most=8, paused=False)
PAUSED = autoscale.spec(CPU, "j", least=2, most=8, paused=True)


def hpa(
    name: str = "mpijob-j", uid: str = "uid-of-j", *, labelled: bool = True, **facts: Any
) -> Autoscaler:
    metadata = Owned(
        name=name,
        namespace="default",
        uid=f"uid-of-{name}",
        resource_version="1",
        job="j",
        job_uid=uid,
    )
    return Autoscaler(
        metadata=metadata, labelled=labelled, **{"digest": autoscale.digest(SPEC), **facts}
    )


OTHER = hpa("own", "", labelled=False, digest="")
NAMESAKE = hpa(uid="", labelled=False, digest="")


def filling(
    size: int = 3, *, at: float = LONG_AGO, added_at: float = LONG_AGO, **facts: Any
) -> Story:
    """A job that trains on all of its workers since then."""
    memory = Memory(own=sizes(size, asked=size, at=at), added_at=added_at)
    listed = config(pods(*range(size)), memory=memory)
    facts = {
        "others_wait": (),
        "queue": NO_QUEUE,
        "config": listed,
        "role": role(*range(5)),
        **facts,
    }
    return job(size, **{"policy": BOUNDED, "scaling": FILLS, **facts})


def waiting(created_at: float = LONG_AGO, **facts: Any) -> Story:
    """The last of four has no node."""
    last = pending(3, created_at=created_at, **{"node": "", **facts})
    listed = config(pods(0, 1, 2), memory=Memory(own=sizes(3, asked=4, at=LONG_AGO)))
    return filling(4, workers=(worker(0), worker(1), worker(2), last), config=listed)


ONE_WAITS = (worker(0), pending(1, node=""))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(filling(), "fill 3 to 4", id="it grows by one worker while none waits"),
        pytest.param(filling(5), "nothing", id="its largest size"),
        pytest.param(filling(max_np_workers=3), "nothing", id="horovodrun's largest size"),
        pytest.param(filling(at=NOW - 59), "nothing", id="just resized"),
        pytest.param(filling(at=NOW - 60), "fill 3 to 4", id="resized a minute ago"),
        pytest.param(filling(added_at=NOW - 59), "nothing", id="just grown"),
        pytest.param(filling(launcher=DELIVERING), "nothing", id="not started"),
        pytest.param(filling(elastic=False), "nothing", id="not elastic"),
        pytest.param(filling(suspended_by="annotation"), "nothing", id="suspended"),
        pytest.param(filling(autoscalers=(OTHER,)), "nothing", id="an HPA scales it"),
        pytest.param(filling(queue=None), "nothing", id="no queue is known"),
        # A command does not read them: it announces nothing that the controller may not do.
        pytest.param(filling(others_wait=None), "nothing", id="who else waits is not known"),
        pytest.param(
            filling().remembering(own=sizes(2, asked=2, at=0.0)),
            "nothing",
            id="another size, not written",
        ),
        pytest.param(filling(config=config(pods(0, 1, 2))), "nothing", id="no size written"),
        pytest.param(filling().without(2), "nothing", id="a worker that is lost comes back first"),
        pytest.param(waiting(), "fill 4 to 3", id="no node takes its worker"),
        pytest.param(waiting(NOW - 119), "nothing", id="no node takes it yet"),
        # With a node, or before quota or a gate: that takes its time.
        pytest.param(waiting(node="n"), "nothing", id="it has a node"),
        pytest.param(waiting(gates=GATES), "ungate 3", id="it waits for quota"),
        # The operator knows a size only, so a worker in between stays wanted.
        pytest.param(
            filling(4, workers=(*ONE_WAITS, worker(2), worker(3))),
            "nothing",
            id="a worker in between",
        ),
        pytest.param(filling(2, workers=ONE_WAITS), "nothing", id="its least size"),
        pytest.param(filling(5, others_wait=(LONG,)), "fill 5 to 4", id="another's worker waits"),
        pytest.param(
            filling(5, others_wait=(LONG, LONG, JUST)), "fill 5 to 3", id="two of others, and a new"
        ),
        pytest.param(filling(5, others_wait=(LONG,) * 9), "fill 5 to 2", id="many of others"),
        # What was given back did not help it, so nothing will for some time.
        pytest.param(
            filling(5, others_wait=(NOW - 599,)),
            "fill 5 to 4",
            id="another's worker waits for minutes",
        ),
        pytest.param(
            filling(5, others_wait=(NOW - 600,)),
            "nothing",
            id="another's worker that no node takes",
        ),
        pytest.param(
            filling(others_wait=(NOW - 600,)),
            "fill 3 to 4",
            id="it grows beside a worker that no node takes",
        ),
        pytest.param(
            filling(5, others_wait=(NOW - 3601,)), "fill 5 to 4", id="an hour later it counts again"
        ),
        pytest.param(
            filling(5, others_wait=(NOW - 600, LONG)), "fill 5 to 4", id="one of two may be helped"
        ),
        # Its own worker that waits for a node makes no room.
        pytest.param(
            waiting(JUST).but(others_wait=(LONG,)), "fill 4 to 2", id="its own and another"
        ),
        pytest.param(filling(2, others_wait=(LONG,)), "nothing", id="others, at its least size"),
        pytest.param(
            filling(5, others_wait=(LONG,), at=NOW - 59), "nothing", id="others, just resized"
        ),
        # Soon it will be known if they find a node by themselves.
        pytest.param(filling(3, others_wait=(JUST,)), "nothing", id="others since a moment"),
        pytest.param(
            filling(queue=Queue(name="team"), at=NOW, others_wait=(LONG,)),
            "fill 3 to 5",
            id="in a queue all at once",
        ),
        pytest.param(
            filling(queue=Queue(name="team"), at=NOW, max_np_workers=4),
            "fill 3 to 4",
            id="as many as horovodrun takes",
        ),
        pytest.param(filling(5, queue=Queue(name="team")), "nothing", id="all in the queue"),
    ],
)
def test_it_takes_what_lies_idle(view: JobView, plan: str) -> None:
    assert does(view, but=f"{BESIDE} touch delete ask start make") == plan


def test_when_it_looks_again() -> None:
    assert does(filling(5)) == f"wake {size.EVERY:g}"
    assert does(filling(at=NOW - 10, added_at=NOW - 5)) == "wake 55"
    assert does(filling(5, queue=Queue(name="team")), but="ask") == "nothing"


def test_a_new_size_is_remembered_before_the_next() -> None:
    view = filling(config=config(pods(0, 1, 2), memory=Memory()))
    assert does(view, but="wake") == "remember own"
    assert change(view).memory.own == sizes(3, asked=3, at=NOW)


BEFORE = sizes(2, asked=4, at=NOW - 60)


def timed(timeout: float = 60.0, least: int | None = None) -> dict[str, Any]:
    return {"scaling": Scaling(scale_timeout=timeout), "policy": Policy(min_replicas=least)}


def grown(*running: int, own: dict[str, bytes] | None = BEFORE, **facts: Any) -> Story:
    """A job that trained on two workers and was asked for four a minute ago, of which these are Ready."""
    workers = tuple(worker(index) if index in running else pending(index) for index in range(4))
    listed = config(pods(0, 1), memory=Memory(own=own or {}))
    return job(4, **{"workers": workers, "config": listed, **timed(), **facts})


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(grown(0, 1), "return 4 to 2", id="none came"),
        pytest.param(grown(0, 1, 2), "return 4 to 3", id="one came"),
        # Size is all that the operator knows: worker-3 cannot stay without worker-2.
        pytest.param(grown(0, 1, 3), "return 4 to 2", id="the last came"),
        # A size that worked once is desired again, whichever workers are missing now.
        pytest.param(grown(1), "return 4 to 2", id="another is missing"),
        pytest.param(grown(0, 1, **timed(least=3)), "return 4 to 3", id="not below its least size"),
        pytest.param(grown(0, 1, **timed(least=4)), "nothing", id="at its least size"),
        pytest.param(grown(0, 1, **timed(least=5)), "nothing", id="below its least size"),
        pytest.param(grown(0, 1, **timed(61.0)), "wake 1", id="not yet"),
        pytest.param(grown(0, 1, 2, 3), "nothing", id="all came"),
        pytest.param(grown(0, 1, scaling=None), "nothing", id="no timeout"),
        pytest.param(grown(0, 1, elastic=False), "nothing", id="not elastic"),
        pytest.param(grown(0, 1, launcher=DELIVERING), "nothing", id="not started"),
        # Nothing worked yet: the first size is what its author asked for.
        pytest.param(
            grown(0, 1, own=sizes(0, asked=4, at=NOW - 60)), "nothing", id="the first size"
        ),
        pytest.param(
            grown(0, 1, own=sizes(4, asked=4, at=NOW - 60)), "nothing", id="a size that worked"
        ),
        pytest.param(
            grown(0, 1, own=sizes(2, asked=3, at=NOW - 60)), "nothing", id="another, not written"
        ),
        pytest.param(
            grown(0, 1, own=sizes(2, asked=4, at=NOW + 3600)), "nothing", id="from the future"
        ),
        pytest.param(grown(0, 1, own=None), "nothing", id="nothing remembered"),
    ],
)
def test_a_size_that_cannot_be_reached_is_taken_back(view: JobView, plan: str) -> None:
    action, wake_at = size.resize(derive(view, now=NOW), (), None)
    assert (
        f"return 4 to {action.after}"
        if action
        else f"wake {wake_at - NOW:g}"
        if wake_at
        else "nothing"
    ) == plan


THIRD_IN_QUEUE = queue(granted(), workload("j-worker-2", workers=1, said="no\nquota"))


@pytest.mark.parametrize(
    ("missing", "facts", "words"),
    [
        ((), {}, "j-worker-2 was not created"),
        ((pending(2, obstacle="0/3 nodes are available"),), {}, "0/3 nodes are available"),
        ((pending(2, last_state="Pending on node n"),), {}, "Pending on node n"),
        ((pending(2),), {}, "kubectl describe pod j-worker-2"),
        (
            tuple(
                pending(index, gates=GATES, obstacle="SchedulingGated: blocked") for index in (2, 3)
            ),
            {"queue": THIRD_IN_QUEUE},
            "(it waits in queue team: no quota); Worker.replicas returns to 2",
        ),
    ],
)
def test_the_event_says_which_workers_are_missing_and_why(
    missing: tuple[Worker, ...], facts: dict[str, Any], words: str
) -> None:
    view = grown(workers=(worker(0), worker(1), *missing), **facts)
    [told] = [note for note in notes(view) if note.reason == "ScaleTimeout"]
    assert told.warning
    assert words in told.message
    assert "j-worker-2, j-worker-3 not Ready 1m after the scale-out to 4 workers" in told.message


@pytest.mark.parametrize(
    ("old", "published", "remembered"),
    [
        # A scale-out begins, goes on, is complete.
        (Memory(own=sizes(2, asked=2, at=5.0)), (0, 1), sizes(2, asked=4, at=NOW)),
        (Memory(own=BEFORE), (0, 1, 2), BEFORE),
        (Memory(own=BEFORE), (0, 1, 2, 3), sizes(4, asked=4, at=NOW - 60)),
        # A scale-in; another size while a size is waited for.
        (Memory(own=sizes(6, asked=6, at=5.0)), (0,), sizes(4, asked=4, at=NOW)),
        (Memory(own=sizes(2, asked=3, at=5.0)), (0, 1), sizes(2, asked=4, at=NOW)),
        # The timeout is set together with the first size, or later, or with the scale-out.
        (Memory(), (), sizes(0, asked=4, at=NOW)),
        (Memory(), (0, 1, 2, 3), sizes(4, asked=4, at=NOW)),
        (Memory(scale=SizeChange(before=0, after=2, at=5.0)), (0, 1), sizes(2, asked=4, at=NOW)),
        # A clock that was ahead.
        (Memory(own=sizes(2, asked=4, at=NOW + 60)), (0, 1), sizes(2, asked=4, at=NOW)),
    ],
)
def test_what_is_remembered_of_the_size(
    old: Memory, published: tuple[int, ...], remembered: dict[str, bytes]
) -> None:
    view = grown(0, 1, config=config(pods(0, 1), memory=old))
    assert kept(view, published) == remembered
    for without in (view.but(scaling=None), view.plain()):
        assert kept(without, published) == {}


def kept(view: JobView, published: tuple[int, ...]) -> dict[str, bytes]:
    """What is remembered once these workers are published."""
    state = derive(view, now=NOW)
    return {
        record.name: record.json
        for one in capability.of(state.view)
        for record in one.remember(state, pods(*published))
    }


def asking(*there: Autoscaler, **facts: Any) -> Story:
    return job(
        3,
        **{
            "policy": WIDE,
            "scaling": SCALED,
            "autoscalers": there,
            "role": role(*range(8)),
            **facts,
        },
    )


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(asking(), "make HPA", id="asked for"),
        pytest.param(asking(hpa()), "nothing", id="it is there"),
        pytest.param(
            asking(hpa(), policy=but(WIDE, max_replicas=6)), "change HPA", id="other bounds"
        ),
        pytest.param(
            asking(hpa(), scaling=Scaling(autoscale=Autoscale(name="q", value=1))),
            "change HPA",
            id="a metric",
        ),
        pytest.param(asking(hpa(digest="")), "change HPA", id="of an earlier version of ours"),
        pytest.param(asking(hpa(), suspended_by="annotation"), "change HPA", id="suspended"),
        pytest.param(asking(hpa(digest=autoscale.digest(PAUSED))), "change HPA", id="resumed"),
        # What a former job of the name left is no rival.
        pytest.param(asking(hpa(uid="former")), "make HPA", id="of a former job"),
        pytest.param(asking(hpa(), scaling=None), "delete HPA", id="not asked for"),
        pytest.param(asking(hpa(), finished=True), "delete HPA", id="finished"),
        pytest.param(asking(hpa(deleting=True), finished=True), "nothing", id="being deleted"),
        pytest.param(asking(finished=True), "nothing", id="finished, gone"),
        pytest.param(asking(hpa(), elastic=False), "delete HPA", id="not elastic"),
        pytest.param(asking(hpa(), OTHER), "delete HPA", id="another scales the job"),
        pytest.param(asking(autoscalers=None), "nothing", id="not known"),
        pytest.param(asking(OTHER), "nothing", id="another, and none of ours"),
        pytest.param(asking(foreign="another operator"), "nothing", id="another operator's"),
        pytest.param(
            asking(hpa(), foreign="another operator", scaling=None), "nothing", id="its HPA, too"
        ),
        pytest.param(asking(deleting=True), "nothing", id="the job is deleted"),
        pytest.param(job(3, autoscalers=(OTHER,)), "nothing", id="another, as it should be"),
        # Whoever labels an HPA as ours without our owner has made it.
        pytest.param(asking(hpa("fake", "")), "nothing", id="labelled as ours"),
        pytest.param(asking(NAMESAKE), "nothing", id="a user's of our name"),
        pytest.param(
            asking(NAMESAKE, finished=True), "nothing", id="a user's of our name, finished"
        ),
        pytest.param(
            asking(NAMESAKE, scaling=None), "nothing", id="a user's of our name, not asked for"
        ),
    ],
)
def test_its_hpa(view: Story, plan: str) -> None:
    assert does(view, but=BESIDE) == plan
    for due in decide(view, now=NOW).actions:
        if isinstance(due, ChangeAutoscaler):
            assert due.ref.name == "mpijob-j"
        if isinstance(due, MakeAutoscaler | ChangeAutoscaler):
            assert (
                does(view.but(autoscalers=(hpa(digest=autoscale.digest(due.spec)),)), but=BESIDE)
                == "nothing"
            )


TOLERANT = Scaling(autoscale=CPU, tolerance=Tolerance(up="0.05"))
TOLERATES = autoscale.spec(CPU, "j", least=2, most=8, paused=False, tolerance=TOLERANT.tolerance)


@pytest.mark.parametrize(
    ("there", "facts", "plan", "up"),
    [
        pytest.param((), {"minor": 35}, "make HPA", "0.05", id="served"),
        pytest.param((), {"minor": 37}, "make HPA", "0.05", id="and later"),
        pytest.param((), {"minor": 34}, "make HPA", None, id="the API server would drop it"),
        pytest.param((), {"minor": 0}, "make HPA", None, id="nobody tells the version"),
        pytest.param((), {}, "nothing", None, id="the version is not known yet"),
        pytest.param((hpa(),), {"minor": 34}, "nothing", None, id="it is there without"),
        pytest.param((hpa(),), {"minor": 35}, "change HPA", "0.05", id="the cluster is upgraded"),
        pytest.param(
            (hpa(digest=autoscale.digest(TOLERATES)),), {"minor": 35}, "nothing", None, id="at rest"
        ),
        pytest.param(
            (hpa(digest=autoscale.digest(TOLERATES)),),
            {"minor": 35, "scaling": SCALED},
            "change HPA",
            None,
            id="not asked for any more",
        ),
    ],
)
def test_its_tolerance(
    there: tuple[Autoscaler, ...], facts: dict[str, Any], plan: str, up: str | None
) -> None:
    view = asking(*there, **{"scaling": TOLERANT, **facts})
    assert does(view, but=BESIDE) == plan
    [*rules] = [
        due.content()["spec"]["behavior"]
        if isinstance(due, MakeAutoscaler)
        else due.change()["spec"]["behavior"]
        for due in decide(view, now=NOW).actions
        if isinstance(due, MakeAutoscaler | ChangeAutoscaler)
    ]
    assert [rule["scaleUp"].get("tolerance") for rule in rules] == [up] * len(rules)
    assert [rule["scaleDown"].get("tolerance") for rule in rules] == [None] * len(rules)


def test_a_change_takes_a_tolerance_away() -> None:
    """A merge keeps what it does not name."""
    view = asking(hpa(digest=autoscale.digest(TOLERATES)), minor=35)
    [due] = [one for one in decide(view, now=NOW).actions if isinstance(one, ChangeAutoscaler)]
    behavior = due.change()["spec"]["behavior"]
    assert [rules["tolerance"] for rules in behavior.values()] == [None, None]


@pytest.mark.parametrize(
    ("minor", "told"), [(34, True), (0, True), (35, False), (None, False)], ids=str
)
def test_who_asks_for_a_tolerance_in_vain_is_told(minor: int | None, told: bool) -> None:
    view = asking(hpa(), scaling=TOLERANT, minor=minor)
    assert ("ToleranceUnavailable" in [one.reason for one in notes(view)]) is told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5%", Tolerance(up="0.05", down="0.05")),
        ("0%", Tolerance(up="0", down="0")),
        ("0.5%", Tolerance(up="0.005", down="0.005")),
        ("100%", Tolerance(up="1", down="1")),
        ("up=2%", Tolerance(up="0.02")),
        ("down=20%", Tolerance(down="0.2")),
        ("up=2%,down=20%", Tolerance(up="0.02", down="0.2")),
        ("down=20%,up=2%", None),
        ("5", None),
        ("0.05", None),
        ("-5%", None),
        ("101%", None),
        ("5%,down=1%", None),
        ("", None),
        ("%", None),
        ("\u0665%", None),
    ],
)
def test_a_tolerance_is_read(text: str, expected: Tolerance | None) -> None:
    assert autoscale.parse_tolerance(text) == expected


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (TOLERANT, False),
        (Scaling(tolerance=Tolerance(up="0.05")), True),
        (Scaling(autoscale=Autoscale(fill=True), tolerance=Tolerance(up="0.05")), True),
    ],
)
def test_a_tolerance_without_an_hpa_has_no_effect(asked: Scaling, told: bool) -> None:
    said = [*asked.findings(job(3).facts)]
    why = (
        "mpijob-elastic/autoscale-tolerance has no effect: mpijob-elastic/autoscale asks for no HPA"
    )
    assert (why in said) is told


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (
            filling(5, others_wait=(LONG, LONG)),
            "5 → 3: other jobs wait for nodes for 2 of their workers",
        ),
        (asking(), "HPA mpijob-j: 2 to 8 workers by cpu"),
        (
            asking(hpa(), scaling=None),
            "HPA mpijob-j is deleted: mpijob-elastic/autoscale does not ask for it",
        ),
        (asking(hpa(), finished=True), "HPA mpijob-j is deleted: the job has finished"),
        (asking(hpa(), elastic=False), "HPA mpijob-j is deleted: the job is not elastic"),
        (asking(hpa(), OTHER), "HPA mpijob-j is deleted: another HPA scales the job"),
        (asking(OTHER), "HPA own scales j. Delete that HPA"),
        (
            asking(hpa(), size_manager="argocd-controller"),
            "argocd-controller sets Worker.replicas of j too",
        ),
    ],
)
def test_the_user_reads_why(view: JobView, words: str) -> None:
    assert any(words in note.message for note in notes(view))


def test_at_rest_nobody_is_told_of_other_managers() -> None:
    assert does(asking(hpa())) == "nothing"
    assert note(filling(5, others_wait=(LONG,))).reason == "SizeFilled"

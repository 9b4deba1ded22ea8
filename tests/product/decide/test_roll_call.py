"""Roll calls: where they are held, what a missing exec brings about, and how many looks a job at rest has."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, lost_ranks, roll_call
from mpijob_elastic.decide.actions import (
    LookIntoLauncher,
    ProbeWorkers,
    TellUser,
    WriteRole,
)
from mpijob_elastic.decide.ended_execs import SETTLED
from mpijob_elastic.decide.lost_ranks import BEGINS_WITHIN, LOOK_SELDOM
from mpijob_elastic.decide.step import Step
from mpijob_elastic.model.goodput import Ledger, Span
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import HeldExecs, RollCall
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import LauncherPhase, Probe
from tests.builders import LONG_AGO, NOW, Story, but, config, pods, role
from tests.product.decide.test_ledger import told
from tests.rank_courses import NEVER, Course, Followed, training

# Looked into twice, the last time a while ago.
BUSY = Probe(busy_seen=True, busy_since=NOW - 100, busy_at=NOW - 20, asked_at=NOW - 20)
IDLE = but(BUSY, idle_since=NOW - 2, idle_at=NOW - 2, asked_at=NOW - 2)
WHILE = 1800  # seconds


def seen(size: int = 3, probe: Probe = BUSY) -> Story:
    """A job at rest, all of whose workers have a rank but for what looks into the last have shown."""
    view = training(size)
    for index in range(size):
        view = view.pod(index, probe=BUSY)
    return view.pod(size - 1, probe=probe)


def called(view: Story, *missing: int, ago: float, **facts: Any) -> Story:
    """The job after a roll call that missed these workers."""
    result: dict[str, Any] = {"answered": True, "hosts": view.host_of, **facts}
    last = RollCall(asked_at=NOW - ago, missing=frozenset(pods(*missing)), **result)
    return view.launched(held=HeldExecs(roll_call=last))


def writing(view: Story) -> Story:
    """The job, whose ranks write lines of progress."""
    span = Span(weight=1, bound_at=LONG_AGO, listed_at=LONG_AGO, line=told(NOW - 20))
    return view.but(ledger=Ledger(uid="u", spans={one.ref.uid: span for one in view.workers}))


def late(view: Story) -> Story:
    """The job a while after a change of its list."""
    return view.remembering(added_at=NOW - 200)


def call(view: JobView) -> Step[LookIntoLauncher]:
    return lost_ranks.call(derive(view, now=NOW))


def looked_into(view: JobView) -> tuple[str, ...]:
    action = lost_ranks.probe(derive(view, now=NOW)).write
    return tuple(worker.name for worker in action.workers) if action else ()


@pytest.mark.parametrize(
    ("view", "is_due"),
    [
        pytest.param(seen(), True, id="all train"),
        pytest.param(seen(2), False, id="of two one proves nothing"),
        pytest.param(seen(probe=Probe()), False, id="one was never looked into"),
        pytest.param(seen(probe=IDLE), False, id="one is idle"),
        pytest.param(
            seen(probe=but(BUSY, in_doubt=True)), False, id="one may be a probe's command"
        ),
        pytest.param(late(seen(probe=Probe())), True, id="one is new, after a change"),
        pytest.param(
            late(seen(probe=Probe()).pod(0, probe=IDLE)), False, id="too few were seen for long"
        ),
        pytest.param(
            seen(probe=but(BUSY, busy_since=BUSY.busy_at - SETTLED + 0.1)),
            False,
            id="seen for a moment",
        ),
        pytest.param(
            seen().launched(started_at=BUSY.busy_at - SETTLED + 0.1), False, id="a new driver"
        ),
        pytest.param(seen().pod(2, ready_at=None), False, id="one is not Ready"),
        pytest.param(seen().but(launch=None), False, id="unread command"),
        pytest.param(
            seen().but(launch=Launch(program="horovodrun", cooldown=(10, 60))),
            False,
            id="hosts come back",
        ),
        pytest.param(seen().but(launch=Launch(program="mpirun")), False, id="mpirun"),
        pytest.param(seen().launched(phase=LauncherPhase.DELIVERING), False, id="no driver"),
        pytest.param(seen().but(launcher=None), False, id="no launcher"),
        pytest.param(seen().launched(held=HeldExecs(hidden=True)), False, id="execs are hidden"),
        pytest.param(seen().configured(kubexec="mine"), False, id="another kubexec.sh"),
        pytest.param(seen().plain(), False, id="not elastic"),
        pytest.param(writing(seen()), False, id="looks for lines"),
        pytest.param(
            writing(seen()).remembering(added_at=NOW - BEGINS_WITHIN + 1), True, id="a late change"
        ),
        pytest.param(
            writing(seen()).remembering(added_at=NOW - BEGINS_WITHIN), False, id="at rest since"
        ),
        pytest.param(
            writing(seen()).remembering(added_at=NOW + 86400), False, id="a change of tomorrow"
        ),
    ],
)
def test_where_a_roll_call_is_held(view: JobView, *, is_due: bool) -> None:
    found = call(view)
    assert (found.write is not None) == is_due
    if found.write:
        assert found.write.is_roll_call
        assert found.again_at == NOW + roll_call.APART


@pytest.mark.parametrize(
    ("view", "again_at"),
    [
        pytest.param(called(seen(), ago=2), NOW + 10.6, id="complete"),
        pytest.param(called(seen(100), ago=2), NOW + 23, id="of many workers"),
        pytest.param(called(seen(), 2, ago=2), NOW + 598, id="one is missing"),
        pytest.param(called(seen(), ago=2, answered=False), NOW + 598, id="no answer"),
        pytest.param(called(seen(), 2, ago=600), None, id="after a while again"),
        pytest.param(called(seen(), 2, ago=13, hosts={}), None, id="of another list"),
        pytest.param(called(seen(), 2, ago=2, hosts={}), NOW + 10.6, id="not much sooner then"),
        pytest.param(
            called(seen().remembering(removed_at=NOW - 1), 2, ago=13), None, id="before a change"
        ),
        pytest.param(
            called(seen().launched(started_at=NOW - 90), 2, ago=95), None, id="of another driver"
        ),
        pytest.param(called(seen(), ago=-3600), None, id="by another clock"),
    ],
)
def test_when_the_next_roll_call_is_held(view: JobView, again_at: float | None) -> None:
    found = call(view)
    assert (found.write is None) == (again_at is not None)
    assert again_at in (found.again_at, None)


@pytest.mark.parametrize(
    ("view", "looks"),
    [
        pytest.param(called(seen(), ago=1), (), id="complete"),
        pytest.param(called(seen(), 2, ago=1), pods(2), id="one is missing"),
        pytest.param(called(seen(), 1, 2, ago=1), pods(1, 2), id="two are missing"),
        pytest.param(called(seen(), 2, ago=21), (), id="looked into since"),
        pytest.param(called(seen(probe=IDLE), 2, ago=5), pods(0), id="idle, and a witness"),
        pytest.param(called(seen(), 2, ago=1, hosts={}), (), id="of another list"),
        pytest.param(
            called(seen().but(config=config(pods(0, 1))), 2, ago=1), (), id="not listed any more"
        ),
    ],
)
def test_whom_a_missing_exec_brings_a_look(view: JobView, looks: tuple[str, ...]) -> None:
    assert looked_into(view) == looks


@pytest.mark.parametrize(
    ("view", "pause"),
    [
        pytest.param(seen(), LOOK_SELDOM, id="no roll call"),
        pytest.param(called(seen(), ago=1), roll_call.WORKERS_APART, id="complete"),
        pytest.param(called(seen(), ago=200), LOOK_SELDOM, id="long ago"),
        pytest.param(called(seen(), ago=1, answered=False), LOOK_SELDOM, id="no answer"),
        pytest.param(called(writing(seen()), ago=1), LOOK_SELDOM, id="looks for lines"),
        pytest.param(
            called(seen().remembering(added_at=NOW - 60), ago=1), LOOK_SELDOM, id="a late change"
        ),
    ],
)
def test_how_often_workers_are_looked_into(view: JobView, pause: float) -> None:
    assert lost_ranks.probe(derive(view, now=NOW)).again_at == BUSY.asked_at + pause


@pytest.mark.parametrize(("failed", "pause"), [(1, 10.0), (2, 20.0), (3, 4 * LOOK_SELDOM)])
def test_a_missing_worker_that_does_not_answer_is_asked_again_soon(
    failed: int, pause: float
) -> None:
    view = called(seen(probe=but(BUSY, failed=failed, asked_at=NOW - 1)), 2, ago=5)
    others = seen().pod(0, probe=but(BUSY, asked_at=NOW)).pod(1, probe=but(BUSY, asked_at=NOW))
    asked = view.pod(0, probe=others.workers[0].probe).pod(1, probe=others.workers[1].probe)
    again_at = lost_ranks.probe(derive(asked, now=NOW)).again_at
    assert again_at == min(NOW - 1 + pause, NOW + LOOK_SELDOM)


def test_a_roll_call_comes_before_the_looks_of_its_job() -> None:
    """Four hundred of these would leave no turn for it."""
    due = seen()
    for index in range(3):
        due = due.pod(index, probe=but(BUSY, asked_at=NOW - 200))
    looks = decide(due, now=NOW).looks
    assert [type(look) for look in looks] == [LookIntoLauncher, ProbeWorkers]
    assert decide(due.but(role=role(0, 1)), now=NOW).looks == ()
    refused = due.but(role=role(0, 1), refused={WriteRole: "no", TellUser: "no"})
    assert len(decide(refused, now=NOW).looks) == 2


def looks_in_a_while(story: Story, *, answers: bool = True) -> int:
    """Return the number of looks of a job that trains, from its second minute on."""
    course = Course(runs=[[(0, NEVER * 10)]] * len(story.workers))
    followed, before = Followed(course, story=story, answers=answers), 0
    for second, _ in followed.states(60 + WHILE):
        if second <= 60:
            before = followed.counts["looks"]
    return followed.counts["looks"] - before


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_a_job_at_rest_is_looked_into_no_more_often_than_without_roll_calls(size: int) -> None:
    without = size * WHILE / lost_ranks.LOOK_SELDOM
    if size == 1:
        without = WHILE / lost_ranks.PROBES_APART
    assert looks_in_a_while(training(size)) <= without + size
    # A thousand jobs are a thousand times one: none has a look because of another.
    assert looks_in_a_while(writing(training(size))) <= size * (WHILE / lost_ranks.LOOK_SELDOM + 1)


def test_a_launcher_that_does_not_answer_costs_a_look_every_ten_minutes() -> None:
    without = 3 * WHILE / lost_ranks.LOOK_SELDOM
    assert looks_in_a_while(training(3), answers=False) <= without + WHILE / roll_call.SELDOM + 3


def test_after_a_change_roll_calls_come_on_top_for_a_quarter_of_an_hour() -> None:
    changed = writing(training(3)).remembering(added_at=NOW)
    at_rest = looks_in_a_while(writing(training(3)))
    assert looks_in_a_while(changed) - at_rest <= BEGINS_WITHIN / roll_call.APART + 3 * 12

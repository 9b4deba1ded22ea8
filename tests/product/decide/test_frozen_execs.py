"""Execs that outlive their pods: which they are, when the launcher is asked, what is said."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, frozen_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher, TellUser
from mpijob_elastic.decide.state import SKEW
from mpijob_elastic.model.execs import MOST_TRIES, Exec, Held
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, pods, role, shown, worker

LAST = "j-worker-2"
DEAD = Exec(pid=41, pod=LAST, started_at=LONG_AGO)


def running(index: int, *, after: float = 0.0) -> Exec:
    """An exec that was started so many seconds after the pods of the job were created."""
    return Exec(pid=41, pod=f"j-worker-{index}", started_at=LONG_AGO + after)


@pytest.mark.parametrize(
    ("found", "cut_off"),
    [
        (running(0), False),
        (running(0, after=100.0), False),
        (running(0, after=-SKEW), False),
        (running(0, after=-SKEW - 1.0), True),
        (running(1, after=100.0), True),
        (running(2, after=100.0), False),
        (running(3, after=100.0), True),
        (running(4, after=100.0), True),
        (running(5, after=100.0), True),
    ],
)
def test_the_pod_is_gone_has_ended_or_is_another(found: Exec, cut_off: bool) -> None:
    going, lost_node = (worker(2, deleting=True, ends_at=NOW - 30.0), worker(4, deleting=True, ends_at=NOW - 90.0))
    view = job(workers=(worker(0), failed(1), going, lost_node, worker(5, node="n", node_gone_at=NOW)))
    assert frozen_execs.cut_off(view, [found], now=NOW) == ((found,) if cut_off else ())


def lost(ago: float, *, held: Held | None = None, **facts: Any) -> JobView:
    """A job of three whose last worker left the list so many seconds ago; its pod is gone."""
    memory = Memory(left={LAST: Left(pod=pod_fingerprint(f"uid-of-{LAST}"), at=NOW - ago)}, removed_at=NOW - ago)
    facts = {"workers": (worker(0), worker(1)), "config": config(pods(0, 1), memory=memory), **facts}
    return with_held(job(2, **facts), held or Held())


def with_held(view: JobView, held: Held) -> JobView:
    assert view.launcher is not None
    return replace(view, launcher=replace(view.launcher, held=held))


def look(view: JobView, *, now: float) -> tuple[LookIntoLauncher | None, float | None]:
    return frozen_execs.look(derive(view, now=now))


def test_a_launcher_is_asked_once_about_a_pod_that_is_gone() -> None:
    early = look(lost(4.0), now=NOW)
    assert early == (None, NOW + 6.0)
    found, _ = look(lost(11.0), now=NOW)
    assert found is not None
    assert look(lost(11.0, held=Held(asked_at=NOW, about=found.about)), now=NOW) == (None, None)


def test_a_launcher_is_asked_at_once_about_a_worker_whose_node_was_deleted() -> None:
    view = job(workers=(worker(0), worker(1), worker(2, node="n", node_gone_at=NOW)))
    found, _ = look(view, now=NOW)
    assert found is not None
    assert look(with_held(view, Held(asked_at=NOW, about=found.about)), now=NOW + 1) == (None, None)
    assert not look(replace(view, config=config(pods(0, 1))), now=NOW)[0], "no rank is started in it"


def test_another_pod_is_another_reason() -> None:
    found, _ = look(lost(20.0), now=NOW)
    assert found is not None
    asked = Held(asked_at=NOW - 1.0, about=found.about)
    assert not look(lost(20.0, held=asked), now=NOW)[0]
    assert look(lost(19.0, held=asked), now=NOW)[0]


def test_a_successor_under_another_host_name_is_a_reason() -> None:
    def view(incarnation: int, age: float) -> JobView:
        memory = Memory(hosts={LAST: Host(pod="x", incarnation=incarnation)})
        workers = (worker(0), worker(1), worker(2, created_at=NOW - age))
        return job(workers=workers, config=config(pods(0, 1, 2), memory=memory))

    assert look(view(1, 11.0), now=NOW)[0]
    assert look(view(1, 4.0), now=NOW)[1] == NOW + 6.0
    assert look(view(0, 11.0), now=NOW) == (None, None)
    assert look(view(1, 1000.0), now=NOW) == (None, None)


@pytest.mark.parametrize(
    "view",
    [
        job(),
        lost(1000.0),
        lost(11.0, elastic=False),
        lost(11.0, launcher=launcher(LauncherPhase.DELIVERING)),
        lost(11.0, launcher=launcher(deleting=True)),
        lost(11.0, foreign="another's"),
        lost(11.0, notices="HandedOver: told"),
        lost(11.0, workers=(worker(0), worker(1), worker(2))),  # it drains
    ],
)
def test_where_nothing_is_to_be_found_nobody_asks(view: JobView) -> None:
    assert look(view, now=NOW) == (None, None)


def test_what_was_found_is_looked_at_again_soon_and_then_seldom() -> None:
    once = Held(asked_at=NOW, suspects=(DEAD,))
    assert look(with_held(job(), once), now=NOW)[1] == NOW + frozen_execs.SECOND_LOOK
    assert look(with_held(job(), once), now=NOW + frozen_execs.SECOND_LOOK)[0]
    twice = replace(once, frozen=(DEAD,))
    lost_node = job(workers=(worker(0), worker(1), worker(2, deleting=True, ends_at=NOW - 90.0)))
    assert look(with_held(lost_node, twice), now=NOW)[1] == NOW + frozen_execs.LATER_LOOKS


def test_what_was_found_is_looked_at_again_at_once_where_the_clock_was_set_back() -> None:
    """Else the driver would wait for a rank that is gone until the clock is where it was."""
    view = with_held(shown(job(2, workers=(worker(0), worker(1)))), Held(asked_at=NOW + 3600.0, suspects=(DEAD,)))
    action, _ = look(view, now=NOW)
    assert action is not None


def test_one_that_is_to_be_ended_or_newly_found_is_looked_at_again_soon() -> None:
    gone = job(2, workers=(worker(0), worker(1)))
    twice = Held(asked_at=NOW, suspects=(DEAD,), frozen=(DEAD,))
    assert look(with_held(gone, twice), now=NOW)[1] == NOW + frozen_execs.SECOND_LOOK
    given_up = replace(twice, tries={DEAD: MOST_TRIES})
    assert look(with_held(gone, given_up), now=NOW)[1] == NOW + frozen_execs.LATER_LOOKS
    another = replace(given_up, suspects=(DEAD, replace(DEAD, pid=43)))
    assert look(with_held(gone, another), now=NOW)[1] == NOW + frozen_execs.SECOND_LOOK


@pytest.mark.parametrize(
    ("found", "may_be_ended"),
    [
        (running(0), False),
        (running(1, after=100.0), True),  # ended
        (running(2, after=-100.0), False),  # its pod is only going
        (running(3, after=100.0), True),  # gone
        (running(4), False),  # its pod was to be gone long ago: its node does not answer
        (running(5, after=-SKEW - 1.0), False),  # another pod, if clocks are right
        (running(5, after=-frozen_execs.SURELY_OLDER), False),
        (running(5, after=-frozen_execs.SURELY_OLDER - 1.0), True),  # another
        (running(6, after=100.0), True),  # its node was deleted, and so its pod will be
        (Exec(pid=41, pod="other-worker-3", started_at=LONG_AGO), False),
    ],
)
def test_what_is_ended_has_no_pod_any_more(found: Exec, may_be_ended: bool) -> None:
    going = worker(2, deleting=True, ends_at=NOW + 30.0, created_at=LONG_AGO - 1000.0)
    lost_node = worker(4, deleting=True, ends_at=NOW - 90.0)
    cut = worker(6, node="n", node_gone_at=NOW)
    view = job(7, workers=(worker(0), failed(1), going, lost_node, worker(5), cut))
    assert frozen_execs.endable(view, [found]) == ((found,) if may_be_ended else ())


@pytest.mark.parametrize(
    "facts",
    [
        {"elastic": False},
        {"foreign": "another's"},
        {"notices": "HandedOver: told"},
        {"deleting": True},
        {"finished": True},
        {"launcher": launcher(LauncherPhase.DELIVERING)},
        {"launcher": launcher(deleting=True)},
        {"launcher": None},
    ],
)
def test_nothing_is_ended_where_the_job_is_not_ours_or_no_driver_runs(facts: dict[str, Any]) -> None:
    assert frozen_execs.endable(job(2, workers=(worker(0), worker(1))), [DEAD]) == (DEAD,)
    assert frozen_execs.endable(job(2, **{"workers": (worker(0), worker(1)), **facts}), [DEAD]) == ()


def test_one_is_tried_to_be_ended_so_often_and_no_more() -> None:
    view = job(2, workers=(worker(0), worker(1)))
    held = Held(frozen=(DEAD,), tries={DEAD: MOST_TRIES - 1})
    assert to_end(view, held) == (DEAD,)
    assert to_end(view, replace(held, tries={DEAD: MOST_TRIES})) == ()
    assert to_end(view, replace(held, frozen=())) == ()


def to_end(view: JobView, held: Held) -> tuple[Exec, ...]:
    """Return the execs that the plan ends, a moment after a look."""
    plan = decide(with_held(view, replace(held, asked_at=NOW - 1.0)), now=NOW)
    return next((action.execs for action in plan.actions if isinstance(action, EndExecs)), ())


def test_after_a_try_the_next_look_is_waited_for() -> None:
    view = job(2, workers=(worker(0), worker(1)))
    held = Held(frozen=(DEAD,), suspects=(DEAD,))
    assert to_end(view, replace(held, tried_at=NOW - 2.0)) == (DEAD,)
    assert to_end(view, replace(held, tried_at=NOW - 1.0)) == ()


def test_many_are_ended_some_at_a_time() -> None:
    many = tuple(replace(DEAD, pid=pid) for pid in range(frozen_execs.MOST_AT_A_TIME + 1))
    view = job(2, workers=(worker(0), worker(1)))
    assert to_end(view, Held(frozen=many)) == many[: frozen_execs.MOST_AT_A_TIME]


def test_what_is_ended_now_is_not_told() -> None:
    view = with_held(shown(job(2, workers=(worker(0), worker(1)))), Held(asked_at=NOW, frozen=(DEAD,)))
    assert [type(action) for action in decide(view, now=NOW).actions] == [EndExecs]


def test_what_was_ended_is_said_and_why() -> None:
    note = frozen_execs.ended(job(), [DEAD, replace(DEAD, pid=43), replace(DEAD, pod="j-worker-10")])
    assert (note.reason, note.warning) == ("FrozenExecEnded", False)
    assert note.message.startswith("j-launcher: ended frozen `kubectl exec` into j-worker-2, j-worker-10, because")


def told(held: Held) -> list[str]:
    view = with_held(shown(job(2, workers=(worker(0), worker(1)))), held)
    return [action.text for action in decide(view, now=NOW).actions if isinstance(action, TellUser)]


def test_frozen_ones_are_told_with_the_command_that_ends_them() -> None:
    [text] = told(Held(suspects=(DEAD,), frozen=(DEAD, replace(DEAD, pid=43, pod="j-worker-10"))))
    assert text.startswith("FrozenExec: j-launcher holds a frozen `kubectl exec` into j-worker-2, j-worker-10, which")
    assert text.endswith("end it: `kubectl -n default exec j-launcher -- /bin/sh -c 'kill 41 43'`")


def test_suspects_are_not_told_nor_what_is_at_rest_again() -> None:
    assert told(Held(suspects=(DEAD,))) == []
    alive = replace(DEAD, pod="j-worker-1")
    assert told(Held(suspects=(alive,), frozen=(alive,))) == []


def test_one_is_told_in_time_where_its_surplus_pod_does_not_end() -> None:
    surplus = worker(2, deleting=True, ends_at=NOW - 30.0)
    held = Held(asked_at=NOW, suspects=(DEAD,), frozen=(DEAD,))
    facts: dict[str, Any] = {"workers": (worker(0), worker(1), surplus), "role": role(0, 1, 2)}
    view = with_held(shown(job(2, **facts)), held)
    plan = decide(view, now=NOW)
    assert (plan.actions, plan.wake_at) == ((), NOW + 30.0)
    [tell] = decide(view, now=NOW + 30.0).actions
    assert isinstance(tell, TellUser)
    assert tell.text.startswith("FrozenExec")

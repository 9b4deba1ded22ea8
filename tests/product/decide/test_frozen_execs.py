"""Execs that outlive their pods: which they are, when the launcher is asked, what is said."""

from typing import Any

import pytest

from mpijob_elastic.decide import derive, frozen_execs
from mpijob_elastic.decide.actions import LookIntoLauncher
from mpijob_elastic.decide.state import SKEW
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import MOST_TRIES, Exec, HeldExecs
from mpijob_elastic.model.memory import Host
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import does, note

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
    going, lost_node = (
        worker(2, deleting=True, ends_at=NOW - 30.0),
        worker(4, deleting=True, ends_at=NOW - 90.0),
    )
    view = job(
        workers=(worker(0), failed(1), going, lost_node, worker(5, node="n", node_gone_at=NOW))
    )
    assert frozen_execs.cut_off(view, [found], now=NOW) == ((found,) if cut_off else ())


@pytest.mark.parametrize("pod", ["k-worker-1", "j-worker-01", "j-worker-1-worker-1"])
def test_an_exec_into_a_pod_of_another_job_is_nothing_to_tell_of(pod: str) -> None:
    found = Exec(pid=41, pod=pod, started_at=LONG_AGO - 100.0)
    assert frozen_execs.cut_off(job(1), [found], now=NOW) == ()


def test_it_is_said_if_nobody_can_tell_the_launchers_processes_from_others() -> None:
    said = note(lost(40.0, held=HeldExecs(asked_at=NOW - 10.0, hidden=True)))
    assert said.reason == "LauncherSharesProcesses"
    assert said.message.startswith("j-launcher shares its processes with")


def lost(ago: float, *, held: HeldExecs | None = None, **facts: Any) -> Story:
    """A job of three whose last worker left the list so many seconds ago; its pod is gone."""
    return (
        job(2).shrunk(from_=3, ago=ago).without(2).launched(held=held or HeldExecs()).but(**facts)
    )


def look(view: JobView, *, now: float = NOW) -> tuple[LookIntoLauncher | None, float | None]:
    return frozen_execs.look(derive(view, now=now))


def wake(view: JobView) -> float | None:
    """In how many seconds to look again."""
    found, at = look(view)
    assert found is None
    return at and at - NOW


def test_a_launcher_is_asked_once_about_a_pod_that_is_gone_and_again_about_another() -> None:
    assert wake(lost(4.0)) == 6.0
    found, _ = look(lost(11.0))
    asked = HeldExecs(asked_at=NOW, about=found.about)
    assert wake(lost(11.0, held=asked)) is None
    assert look(lost(12.0, held=asked))[0]


def test_a_launcher_is_asked_at_once_about_a_worker_whose_node_was_deleted() -> None:
    view = job().pod(2, node="n", node_gone_at=NOW)
    found, _ = look(view)
    assert look(view.launched(held=HeldExecs(asked_at=NOW, about=found.about)), now=NOW + 1) == (
        None,
        None,
    )
    assert wake(view.but(config=config(pods(0, 1)))) is None, "no rank is started in it"


def test_a_successor_under_another_host_name_is_a_reason() -> None:
    def view(incarnation: int, age: float) -> Story:
        renamed = job().remembering(hosts={LAST: Host(pod="x", incarnation=incarnation)})
        return renamed.pod(2, created_at=NOW - age)

    assert look(view(1, 11.0))[0]
    assert wake(view(1, 4.0)) == 6.0
    assert wake(view(0, 11.0)) is None
    assert wake(view(1, 1000.0)) is None


@pytest.mark.parametrize(
    "view",
    [
        job(),
        lost(1000.0),
        lost(11.0).plain(),
        lost(11.0).launched(phase=LauncherPhase.DELIVERING),
        lost(11.0).launched(deleting=True),
        lost(11.0, foreign="another's"),
        lost(11.0, notices="HandedOver: told"),
        job(2).shrunk(from_=3, ago=11.0),  # it drains
    ],
)
def test_where_nothing_is_to_be_found_nobody_asks(view: JobView) -> None:
    assert look(view) == (None, None)


def test_what_was_found_is_looked_at_again_soon_and_then_seldom() -> None:
    once = HeldExecs(asked_at=NOW, suspects=(DEAD,))
    twice = but(once, frozen=(DEAD,))
    given_up = but(twice, tries={DEAD: MOST_TRIES})
    another = but(given_up, suspects=(DEAD, but(DEAD, pid=43)))
    lost_node = job().pod(2, deleting=True, ends_at=NOW - 90.0)
    assert wake(job().launched(held=once)) == frozen_execs.SECOND_LOOK
    assert look(job().launched(held=once), now=NOW + frozen_execs.SECOND_LOOK)[0]
    assert wake(lost_node.launched(held=twice)) == frozen_execs.LATER_LOOKS
    assert wake(job(2).launched(held=twice)) == frozen_execs.SECOND_LOOK, "it is to be ended"
    assert wake(job(2).launched(held=given_up)) == frozen_execs.LATER_LOOKS
    assert wake(job(2).launched(held=another)) == frozen_execs.SECOND_LOOK, "one is newly found"


def test_what_was_found_is_looked_at_again_at_once_where_the_clock_was_set_back() -> None:
    """Else the driver would wait for a rank that is gone until the clock is where it was."""
    assert look(job(2).launched(held=HeldExecs(asked_at=NOW + 3600.0, suspects=(DEAD,))))[0]


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
def test_nothing_is_ended_where_the_job_is_not_ours_or_no_driver_runs(
    facts: dict[str, Any],
) -> None:
    assert frozen_execs.endable(job(2), [DEAD]) == (DEAD,)
    assert frozen_execs.endable(job(2, **facts), [DEAD]) == ()


def ends(*found: Exec, **held: Any) -> str:
    """What is done a second after a look has found these twice."""
    return does(
        job(2).launched(
            held=HeldExecs(**{"asked_at": NOW - 1.0, "suspects": found, "frozen": found, **held})
        )
    )


def test_one_is_tried_to_be_ended_so_often_and_no_more() -> None:
    assert ends(DEAD, tries={DEAD: MOST_TRIES - 1}) == "kill 41"
    assert ends(DEAD, tries={DEAD: MOST_TRIES}) == "say FrozenExec"
    assert ends(DEAD, frozen=()) == "nothing"
    assert ends(but(DEAD, pod="j-worker-1")) == "nothing", "its pod is at rest again"


def test_after_a_try_the_next_look_is_waited_for() -> None:
    assert ends(DEAD, tried_at=NOW - 2.0) == "kill 41"
    assert ends(DEAD, tried_at=NOW - 1.0) == "say FrozenExec"


def test_many_are_ended_some_at_a_time() -> None:
    many = tuple(but(DEAD, pid=pid) for pid in range(frozen_execs.MOST_AT_A_TIME + 1))
    first = " ".join(str(found.pid) for found in many[: frozen_execs.MOST_AT_A_TIME])
    assert ends(*many) == f"kill {first}"


def test_what_was_ended_is_said_and_why() -> None:
    note = frozen_execs.ended(job(), [DEAD, but(DEAD, pid=43), but(DEAD, pod="j-worker-10")])
    assert (note.reason, note.warning) == ("FrozenExecEnded", False)
    assert note.message.startswith(
        "j-launcher: ended frozen `kubectl exec` into j-worker-2, j-worker-10, because"
    )


def test_frozen_ones_are_told_with_the_command_that_ends_them() -> None:
    frozen = (DEAD, but(DEAD, pid=43, pod="j-worker-10"))
    view = job(2).launched(held=HeldExecs(suspects=(DEAD,), frozen=frozen))
    assert does(view) == "say FrozenExec"
    text = note(view).line
    assert text.startswith(
        "FrozenExec: j-launcher holds a frozen `kubectl exec` into j-worker-2, j-worker-10, which"
    )
    assert text.endswith("end it: `kubectl -n default exec j-launcher -- /bin/sh -c 'kill 41 43'`")


def test_one_is_told_in_time_where_its_surplus_pod_does_not_end() -> None:
    surplus = worker(2, deleting=True, ends_at=NOW - 30.0)
    held = HeldExecs(asked_at=NOW, suspects=(DEAD,), frozen=(DEAD,))
    view = job(2, workers=(worker(0), worker(1), surplus), role=role(0, 1, 2)).launched(held=held)
    assert does(view) == "wake 30"
    assert does(view, now=NOW + 30.0) == "say FrozenExec"

"""A rank is lost for sure once its exec has ended: when the launcher is asked, what it must hold, what follows."""

import pytest

from mpijob_elastic.decide import derive, ended_execs, frozen_execs
from mpijob_elastic.decide.ended_execs import ASKED_AFTER, SETTLED
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import LauncherPhase, Probe
from tests.builders import LONG_AGO, NOW, Story, but, config, job, pods
from tests.product.decide.plans import does, those
from tests.product.decide.test_ledger import told

MISSED_AT = NOW - ASKED_AFTER
MISSED = Probe(
    busy_seen=True,
    busy_at=NOW - 20,
    busy_since=LONG_AGO,
    idle_since=MISSED_AT,
    idle_at=MISSED_AT,
    asked_at=MISSED_AT,
)
BUSY = Probe(busy_seen=True, busy_at=MISSED_AT, asked_at=MISSED_AT)
HOROVODRUN = Launch(program="horovodrun", np=3)
KUBECTL_EXECS = [
    Exec(pid=index, pod=pod, started_at=LONG_AGO) for index, pod in enumerate(pods(0, 1, 2))
]


def story(missed: Probe = MISSED) -> Story:
    """A job of three whose last worker has no rank any more, a moment after a look has shown that."""
    view = job(3, launch=HOROVODRUN).launched(started_at=LONG_AGO)
    return view.pod(0, probe=BUSY).pod(1, probe=BUSY).pod(2, probe=missed)


def asks(view: JobView, *, now: float = NOW) -> bool:
    return frozen_execs.look(derive(view, now=now)).write is not None


def answered(view: Story, *held: int) -> Story:
    """The job after its launcher has shown the execs into these workers."""
    look = frozen_execs.look(derive(view, now=NOW)).write
    assert look
    execs = [found for found in KUBECTL_EXECS if found.pod in pods(*held)]
    ended = ended_execs.confirmed(view, execs, now=NOW)
    return view.launched(held=HeldExecs(asked_at=NOW, about=look.about, ended=ended))


def lost(view: JobView) -> tuple[str, ...]:
    return those(view, lambda worker: worker.rank_lost)


def test_a_rank_that_has_steps_left_is_missed() -> None:
    for total in (0, 601):
        line = told(MISSED_AT, step=600, total=total)
        assert lost(answered(story(but(MISSED, progress=line)), 0, 1)) == pods(2)


def test_the_launcher_is_asked_once_soon_after_a_rank_is_missed() -> None:
    assert frozen_execs.look(derive(story(), now=NOW - 1)).again_at == NOW
    assert asks(story())
    again = answered(story(), 0, 1, 2)
    assert not asks(again, now=NOW + 1000)
    assert asks(again.pod(2, probe=but(MISSED, idle_since=MISSED_AT - 9)))


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(story(BUSY), id="at rest"),
        pytest.param(
            story(but(MISSED, busy_seen=False, busy_at=0.0, busy_since=None)), id="no rank was seen"
        ),
        pytest.param(
            story(but(MISSED, busy_since=MISSED.busy_at - SETTLED + 0.1)), id="seen for a moment"
        ),
        pytest.param(
            story().launched(started_at=MISSED.busy_at - SETTLED + 0.1), id="a new driver"
        ),
        pytest.param(story(but(MISSED, in_doubt=True)), id="maybe a command of the kubelet"),
        pytest.param(story().launched(started_at=None), id="unknown start"),
        pytest.param(story().launched(phase=LauncherPhase.DELIVERING), id="no driver"),
        pytest.param(story().but(launcher=None), id="no launcher"),
        pytest.param(story().but(launch=None), id="unread command"),
        pytest.param(story().but(launch=but(HOROVODRUN, unread=True)), id="unread options"),
        pytest.param(story().but(launch=but(HOROVODRUN, cooldown=(10, 60))), id="hosts come back"),
        pytest.param(story().but(launch=Launch(program="mpirun")), id="mpirun"),
        pytest.param(story().configured(kubexec="mine"), id="another kubexec.sh"),
        pytest.param(story().but(config=config(pods(0, 1))).shown(), id="not listed"),
        pytest.param(story().plain(), id="not elastic"),
        pytest.param(
            story(but(MISSED, progress=told(MISSED_AT, step=600, total=600))), id="its last step"
        ),
    ],
)
def test_the_launcher_is_not_asked_where_an_ended_exec_would_prove_nothing(view: JobView) -> None:
    assert not asks(view)
    assert lost(view) == ()


@pytest.mark.parametrize(
    ("held", "is_lost"),
    [
        pytest.param((0, 1), True, id="only its exec has ended"),
        pytest.param((0, 1, 2), False, id="its exec runs"),
        pytest.param((0,), False, id="most have ended: so does training"),
        pytest.param((), False, id="nothing is seen"),
    ],
)
def test_what_the_launcher_has_to_hold(held: tuple[int, ...], *, is_lost: bool) -> None:
    view = answered(story(), *held)
    assert lost(view) == (pods(2) if is_lost else ())
    if is_lost:
        assert does(view) == "publish 0 1, lost 2 (RankLost)"


def test_of_two_workers_one_shows_nothing() -> None:
    """Training may end: then the one rank ends before the other."""
    view = story().but(config=config(pods(1, 2))).without(0)
    assert lost(answered(view.but(replicas=2).shown(), 1)) == ()


def test_most_have_to_train_as_before() -> None:
    view = answered(story(), 0, 1)
    assert lost(view.pod(0, probe=MISSED).pod(1, probe=but(MISSED, busy_seen=False))) == ()


def test_a_rank_that_is_seen_again_is_not_lost() -> None:
    view = answered(story(), 0, 1)
    assert lost(view.pod(2, probe=but(BUSY, busy_at=NOW))) == ()
    later = but(MISSED, busy_at=NOW, idle_since=NOW + 10, idle_at=NOW + 10)
    assert lost(view.pod(2, probe=later)) == ()


def test_a_look_that_is_too_old_shows_nothing() -> None:
    assert those(answered(story(), 0, 1), lambda one: one.rank_lost, now=NOW + 30) == ()


@pytest.mark.parametrize(("now", "is_confirmed"), [(NOW, True), (NOW - 0.1, False)])
def test_a_look_for_another_reason_does_not_come_too_early(
    now: float, *, is_confirmed: bool
) -> None:
    assert bool(ended_execs.confirmed(story(), KUBECTL_EXECS[:2], now=now)) == is_confirmed

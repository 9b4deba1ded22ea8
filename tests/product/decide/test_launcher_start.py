"""The launcher: when it is touched, when it is made again because it can never start, and whom it waits for."""

from typing import Any

import pytest

from mpijob_elastic.decide import config_map, decide, derive, launcher_start
from mpijob_elastic.decide.actions import RefreshLauncher
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, Probe, RefusedTouch
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
    tries,
    worker,
)
from tests.product.decide.plans import does, state

BLIND = launcher(mounts_discovery=False)
WAITING, DELIVERING = launcher(LauncherPhase.WAITING), launcher(LauncherPhase.DELIVERING)
CHANGED = Memory(added_at=LONG_AGO)
EMPTY, TWO = config([], memory=CHANGED), config(pods(0, 1), memory=CHANGED)


def refresh(view: JobView, *, now: float = NOW) -> RefreshLauncher | None:
    return config_map.refresh(derive(view, now=now), view.config)[0] if view.config else None


def shown_at(view: JobView, *, now: float = NOW) -> float | None:
    return state(view, now=now).launcher.shown_at


def touched(view: Story, touch: RefreshLauncher) -> Story:
    return view.launched(refreshed=touch.text)


def test_a_launcher_that_trains_is_touched_once_for_a_change() -> None:
    touch = refresh(job(known=False))
    assert touch is not None
    after = touched(job(known=False), touch)
    assert shown_at(after) == NOW
    assert refresh(after, now=NOW + 1000) is None


@pytest.mark.parametrize(
    ("facts", "helps"),
    [
        ({}, True),
        ({"launcher": None}, False),
        ({"launcher": BLIND}, False),
        ({"launcher": launcher(deleting=True)}, False),
        ({"launcher": launcher(LauncherPhase.FINISHED), "config": EMPTY}, False),
        ({"launcher": WAITING}, False),
        ({"launcher": WAITING, "config": TWO}, True),
        ({"launcher": DELIVERING, "config": TWO}, True),
        ({"elastic": False}, False),
        ({"config": None}, False),
        ({"config": EMPTY}, False),
    ],
)
def test_when_a_touch_helps(facts: dict[str, Any], helps: bool) -> None:
    view = job(known=False, **facts)
    assert state(view).launcher.can_be_shown is helps
    assert (refresh(view) is not None) is helps
    assert refresh(view.configured(published=None)) is None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(config(pods(0, 1)), id="hosts"),
        pytest.param(config(pods(0, 1, 2), hostfile=pods(0)), id="hostfile"),
        pytest.param(config(pods(0, 1, 2), slots=2), id="slots"),
        # The same hosts again, after others that the launcher may have been shown instead.
        pytest.param(
            config(pods(0, 1, 2), memory=Memory(removed_at=5.0, added_at=6.0)), id="there and back"
        ),
    ],
)
def test_every_change_is_shown_again(other: Any) -> None:
    assert shown_at(job(3).but(config=other)) is None


@pytest.mark.parametrize(
    "value", ["", "@", "1700000000", "{digest}", "{digest}@", "{digest}@x", "{digest}@nan"]
)
def test_an_annotation_that_we_did_not_write_is_written_anew(value: str) -> None:
    view = job(3)
    digest = config_map.mark(view.config or EMPTY, at=0.0).partition("@")[0]
    view = view.launched(refreshed=value.format(digest=digest))
    assert shown_at(view) is None
    assert refresh(view) is not None


@pytest.mark.parametrize("touch", ["-1", "-1e308", "-inf", "nan", "0+-1", f"0+{'9' * 400}"])
def test_a_touch_of_which_no_time_can_be_made_counts_as_none(touch: str) -> None:
    view = job(3)
    digest = config_map.mark(view.config or EMPTY, at=0.0).partition("@")[0]
    assert shown_at(view.launched(refreshed=f"{digest}@{touch}")) is None


@pytest.mark.parametrize(
    ("at", "believed"), [(NOW + 5, True), (NOW + 6, False), (float("inf"), False)]
)
def test_a_touch_in_the_future_counts_as_none(at: float, believed: bool) -> None:
    assert (shown_at(job().shown(at=at)) is not None) is believed


@pytest.mark.parametrize(
    ("view", "sees"),
    [
        (job(), True),
        (job(launcher=None), True),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False)), True),
        (job(launcher=BLIND), False),
    ],
)
def test_a_running_job_sees_hosts_if_its_launcher_mounts_the_list(
    view: JobView, sees: bool
) -> None:
    assert state(view).launcher.sees_hosts is sees


BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)
UNKNOWN = Probe(asked_at=NOW)
# Its driver cannot be reminded, because the launcher finds no pod of another name.
LEAVES = job(2).shrunk(from_=3, ago=0).configured(kubexec="mine")
BUSY_LEAVES = LEAVES.pod(2, probe=BUSY)


def touches(view: Story, *, seconds: int) -> list[int]:
    """After how many seconds the launcher is touched while nothing else changes."""
    found = []
    for second in range(seconds):
        touch = refresh(view, now=NOW + second)
        if touch is not None:
            view = touched(view, touch)
            assert refresh(view, now=NOW + second) is None
            found.append(second)
        # A repetition leaves the time from which the drain counts as it is.
        assert shown_at(view, now=NOW + second) == NOW
    return found


@pytest.mark.parametrize(
    ("view", "at"),
    [
        (BUSY_LEAVES, [5, 15, 35, 75]),
        # Exec cannot tell, so a rank may run there.
        (LEAVES.pod(2, probe=UNKNOWN), [5, 15, 35, 75]),
        (BUSY_LEAVES.pod(2, opaque=True), [5, 15, 35, 75]),
        (
            LEAVES.pod(2, probe=Probe(busy_seen=True, asked_at=NOW, busy_at=NOW, idle_at=NOW + 1)),
            [],
        ),
        (BUSY_LEAVES.pod(2, running=False, ready_at=None, terminated=True), []),
        (BUSY_LEAVES.pod(2, deleting=True), []),
        (BUSY_LEAVES.pod(2, running=False, ready_at=None, node="n"), []),
        (job(3).shown(at=NOW), []),
    ],
)
def test_a_launcher_is_touched_again_while_a_rank_may_run_in_a_leaving_worker(
    view: Story, at: list[int]
) -> None:
    assert touches(view, seconds=600) == at


def test_after_a_pause_of_ours_it_is_touched_once() -> None:
    touch = refresh(BUSY_LEAVES, now=NOW + 40)
    assert touch is not None
    assert touch.again == 3
    after = touched(BUSY_LEAVES, touch)
    assert config_map.refresh(derive(after, now=NOW + 40), after.config or EMPTY) == (
        None,
        NOW + 75,
    )


def test_a_repetition_wakes_us_where_exec_cannot_look() -> None:
    assert decide(LEAVES.pod(2, probe=UNKNOWN, opaque=True), now=NOW + 1).wake_at == NOW + 5


@pytest.mark.parametrize("again", ["x", "1.5", "9" * 5000])
def test_a_repetition_that_we_did_not_write_is_no_touch(again: str) -> None:
    assert BUSY_LEAVES.launcher is not None
    foreign = BUSY_LEAVES.launched(refreshed=f"{BUSY_LEAVES.launcher.facts.refreshed}+{again}")
    assert shown_at(foreign, now=NOW + 1) is None


def refused(view: Story, *, times: int) -> Story:
    """The same job after so many touches in a row were refused, the last at NOW."""
    return view.launched(
        refused=RefusedTouch(change="", tries=tries(times), reason="a policy says no")
    )


@pytest.mark.parametrize(
    ("times", "wait"), [(1, 1.0), (2, 2.0), (3, 5.0), (6, 60.0), (7, 60.0), (1000, 60.0)]
)
def test_a_touch_that_was_refused_is_tried_again_later_and_later(times: int, wait: float) -> None:
    view = refused(job(known=False), times=times)
    assert refresh(view, now=NOW + wait - 0.1) is None
    assert decide(view, now=NOW).wake_at == NOW + wait
    touch = refresh(view, now=NOW + wait)
    assert touch is not None
    assert (touch.tries.count, touch.tries.at) == (times + 1, NOW + wait)


def test_a_refused_touch_holds_up_nothing_else_and_no_worker_counts_as_told() -> None:
    assert (
        does(refused(job(2).shrunk(from_=3, ago=3600).unshown(), times=2), but="wake")
        == "say RefreshRefused"
    )


DROPPED_AT = NOW - 20
UID = "uid-of-j-launcher"
STUCK = launcher(LauncherPhase.DELIVERING, delivering_since=NOW - 30)
MISSED = launcher(LauncherPhase.DELIVERING, mounts_discovery=False)
MISSED_WAITING = launcher(LauncherPhase.WAITING, mounts_discovery=False)


def stuck(**facts: Any) -> Story:
    """A job scaled in while its launcher waited, whose workers all run; `facts` of the launcher."""
    return scaled_in(launcher(LauncherPhase.DELIVERING, **facts))


def scaled_in(
    pod: Any = STUCK, *, memory: Memory | None = None, dropped: float = DROPPED_AT, **facts: Any
) -> Story:
    return job(
        2,
        launcher=pod,
        config=config(pods(0, 1), memory=memory or Memory(dropped_at=dropped)),
        known=False,
        **facts,
    )


def missed(count: int, *, at: float = NOW, uid: str = UID) -> Story:
    """A job whose launcher came without the mount, `count` times so far."""
    return scaled_in(MISSED, memory=Memory(launchers=Tries(count=count, at=at, uid=uid)))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (scaled_in(), (True, None)),
        (scaled_in(dropped=NOW - 4), (False, NOW + 6)),
        (stuck(delivering_since=NOW - 4), (False, NOW + 6)),
        (scaled_in(workers=(worker(0), worker(1, ready_at=NOW - 4))), (False, NOW + 6)),
        # It waits for a worker that is still to come, rightly.
        (scaled_in(workers=(worker(0), pending(1))), (False, None)),
        (scaled_in(workers=(worker(0),)), (False, None)),
        # It was created after the hostfile had become true, as far as two clocks can tell.
        (stuck(created_at=DROPPED_AT + 5), (True, None)),
        (stuck(created_at=DROPPED_AT + 6), (False, None)),
        (scaled_in(dropped=0.0), (False, None)),
        (scaled_in(WAITING), (False, None)),
        (scaled_in(launcher()), (False, None)),
        (scaled_in(launcher(LauncherPhase.FINISHED)), (False, None)),
        (stuck(deleting=True), (False, None)),
        (scaled_in(elastic=False), (False, None)),
        # A kubelet whose clock is ahead holds nothing up.
        (scaled_in(workers=(worker(0), worker(1, ready_at=NOW + 3600))), (True, None)),
        (stuck(delivering_since=NOW + 3600), (True, None)),
        # It missed admission: it is made again a few times, once that is written down.
        (scaled_in(MISSED_WAITING), (False, None)),
        (missed(1, uid="before"), (False, None)),
        (missed(1), (True, None)),
        (missed(2), (False, NOW + 15)),
        (missed(2, at=NOW - 15), (True, None)),
        (missed(3), (False, NOW + 30)),
        (missed(3, at=NOW + 3600), (True, None)),
        # Then it is left alone, but for what holds for every launcher.
        (missed(4), (False, None)),
        (missed(4).remembering(dropped_at=DROPPED_AT), (True, None)),
    ],
)
def test_when_a_launcher_is_made_again(view: JobView, expected: tuple[bool, float | None]) -> None:
    action, wake_at = launcher_start.recreate(state(view), view.config or EMPTY)
    assert (action is not None, wake_at) == expected


LISTED = launcher(LauncherPhase.DELIVERING)
COUNTED = Memory(launchers=Tries(count=1, at=NOW, uid=UID))


@pytest.mark.parametrize(
    ("launched", "facts", "lacks"),
    [
        pytest.param(MISSED, {}, "/etc/mpi/discover_hosts.sh", id="no list"),
        pytest.param(
            MISSED, {"names_elastic": True}, "/etc/mpi/discover_hosts.sh", id="neither file"
        ),
        pytest.param(LISTED, {"names_elastic": True}, "/etc/mpi/elastic.sh", id="no driver"),
        pytest.param(LISTED, {}, "", id="Horovod's"),
        pytest.param(
            launcher(LauncherPhase.DELIVERING, mounts_elastic=True),
            {"names_elastic": True},
            "",
            id="both files",
        ),
        pytest.param(launcher(), {"names_elastic": True}, "", id="it has started"),
        pytest.param(
            LISTED,
            {"names_elastic": True, "spec_elastic": False, "launcher_elastic": True},
            "",
            id="an edit that switches it off",
        ),
    ],
)
def test_a_launcher_that_lacks_a_file_is_made_again_before_it_starts(
    launched: Any, facts: dict[str, Any], lacks: str
) -> None:
    view = job(2, launcher=launched, config=config(pods(0, 1), memory=COUNTED), known=False)
    action, _ = launcher_start.recreate(state(but(view, **facts)), view.config or EMPTY)
    told = f"was created without {lacks} while the webhook was down; recreating it"
    assert (action is not None) is (lacks != "")
    assert action is None or told in action.note.message


@pytest.mark.parametrize(
    ("view", "counted"),
    [
        (scaled_in(MISSED_WAITING), Tries(count=1, at=NOW, uid=UID)),
        (missed(1, at=5.0, uid="before"), Tries(count=2, at=NOW, uid=UID)),
        (missed(1, at=5.0), Tries(count=1, at=5.0, uid=UID)),
        (scaled_in(BLIND), None),
        (scaled_in(), None),
        (job(launcher=None), None),
        (scaled_in(MISSED_WAITING, elastic=False), None),
    ],
)
def test_each_launcher_without_the_mount_counts_once(view: JobView, counted: Tries | None) -> None:
    assert launcher_start.tries(state(view)) == counted


ALL = (0, 1, 2, 3)


def waiting(
    least: int | None, *running: int, hostfile: tuple[int, ...] = ALL, **facts: Any
) -> Story:
    """Four workers asked for, of which these run, while the launcher waits."""
    workers = tuple(worker(index) if index in running else pending(index) for index in ALL)
    seen, policy = config([], hostfile=pods(*hostfile)), Policy(min_replicas=least)
    facts = {"workers": workers, "launcher": DELIVERING, "config": seen, "policy": policy, **facts}
    return job(4, known=False, **facts)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        # The first workers by index, until others run.
        (waiting(2), (0, 1)),
        (waiting(2, hostfile=(0, 1)), (0, 1)),
        (waiting(2, 3, hostfile=(0, 1)), (0, 3)),
        (waiting(2, 2, 3, hostfile=(0, 1)), (2, 3)),
        (waiting(2, 1, 2, 3, hostfile=(0, 1)), (1, 2)),
        # Who comes up later changes nothing.
        (waiting(2, *ALL, hostfile=(2, 3)), (2, 3)),
        (waiting(2, 0, 2, 3, hostfile=(2, 3)), (2, 3)),
        # A longer hostfile stays while all in it run, and loses who does not.
        (waiting(2, *ALL), ALL),
        (waiting(2, 0, 1, 3), (0, 1, 3)),
        (waiting(3, 3), (0, 1, 3)),
        (waiting(2, 2, workers=(worker(2),)), (0, 2)),
        # On a node that goes a worker is as good as none.
        (waiting(2, workers=(worker(0, disruption="spot-itn"), worker(1), worker(2))), (1, 2)),
        # horovodrun would wait, and give up, with fewer than its -np.
        (waiting(2, 3, np_workers=3), (0, 1, 3)),
        (waiting(2, 3, np_workers=4), ALL),
        (waiting(2, 0, 2, np_workers=1, hostfile=(0, 1)), (0, 2)),
        (waiting(None, 0, np_workers=1), ALL),
        # Its command may count the lines of the hostfile.
        (waiting(2, 0, 1, unread_options=frozenset({"np"})), ALL),
        (waiting(2, 0, 1, names_hostfile=True), ALL),
        (waiting(2, 0, 1, unread_options=frozenset({"min_np", "max_np"})), (0, 1)),
        # Without a least size, or at it, all are waited for.
        (waiting(None, 0), ALL),
        (waiting(4, 0, hostfile=(0,)), ALL),
        (waiting(9, 0), ALL),
        (waiting(2, 0, 1, replicas=1), (0,)),
        (waiting(2, 0, 1, replicas=0), ()),
    ],
)
def test_whom_it_waits_for(view: JobView, expected: tuple[int, ...]) -> None:
    """As many as the least size, and those that run first."""
    assert launcher_start.awaited(state(view), view.config or EMPTY) == pods(*expected)

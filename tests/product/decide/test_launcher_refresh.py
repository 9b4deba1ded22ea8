"""The launcher's knowledge of the published list."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import config_map, decide, derive
from mpijob_elastic.decide.actions import RefreshLauncher
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Refusal
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, config, job, launcher, pods, shown, worker


def refresh(view: JobView, *, now: float) -> RefreshLauncher | None:
    return config_map.refresh(derive(view, now=now), view.config)[0] if view.config else None


CHANGED = Memory(added_at=LONG_AGO)


def test_a_launcher_that_trains_is_touched_once_for_a_change() -> None:
    view = job(known=False)
    touch = refresh(view, now=NOW)
    assert touch is not None
    after = replace(view, launcher=launcher(refreshed=touch.digest))
    assert derive(after, now=NOW).launcher.shown_at == NOW
    assert refresh(after, now=NOW + 1000) is None


@pytest.mark.parametrize(
    ("facts", "helps"),
    [
        ({}, True),
        ({"launcher": None}, False),
        ({"launcher": launcher(mounts_discovery=False)}, False),
        ({"launcher": launcher(deleting=True)}, False),
        ({"launcher": launcher(LauncherPhase.FINISHED), "config": config([], memory=CHANGED)}, False),
        ({"launcher": launcher(LauncherPhase.WAITING)}, False),
        ({"launcher": launcher(LauncherPhase.WAITING), "config": config(pods(0, 1), memory=CHANGED)}, True),
        ({"launcher": launcher(LauncherPhase.DELIVERING), "config": config(pods(0, 1), memory=CHANGED)}, True),
        ({"elastic": False}, False),
        ({"config": None}, False),
        ({"config": config([], memory=CHANGED)}, False),
        ({"config": replace(config(pods(0)), published=None)}, False),
    ],
)
def test_when_a_touch_helps(facts: dict[str, Any], helps: bool) -> None:
    view = job(known=False, **facts)
    assert derive(view, now=NOW).launcher.can_be_shown is helps
    assert (refresh(view, now=NOW) is not None) is helps


@pytest.mark.parametrize(
    "other",
    [
        config(pods(0, 1)),
        config(pods(0, 1, 2), hostfile=pods(0)),
        config(pods(0, 1, 2), slots=2),
        # The same hosts again, after others that the launcher may have been shown instead.
        config(pods(0, 1, 2), memory=Memory(removed_at=5.0, added_at=6.0)),
    ],
    ids=["hosts", "hostfile", "slots", "there-and-back"],
)
def test_every_change_is_shown_again(other: Any) -> None:
    assert derive(replace(job(3), config=other), now=NOW).launcher.shown_at is None


@pytest.mark.parametrize("value", ["", "@", "1700000000", "{digest}", "{digest}@", "{digest}@x", "{digest}@nan"])
def test_an_annotation_that_we_did_not_write_is_written_anew(value: str) -> None:
    view = job(3)
    assert view.config is not None
    digest = config_map.mark(view.config, at=0.0).partition("@")[0]
    view = replace(view, launcher=launcher(refreshed=value.format(digest=digest)))
    assert derive(view, now=NOW).launcher.shown_at is None
    assert refresh(view, now=NOW) is not None


@pytest.mark.parametrize(("at", "believed"), [(NOW + 5, True), (NOW + 6, False), (float("inf"), False)])
def test_a_touch_in_the_future_counts_as_none(at: float, believed: bool) -> None:
    assert (derive(shown(job(), at=at), now=NOW).launcher.shown_at is not None) is believed


@pytest.mark.parametrize(
    ("view", "sees", "may_delete"),
    [
        (job(), True, True),
        (job(launcher=None), True, True),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False)), True, True),
        (job(launcher=launcher(mounts_discovery=False)), False, False),
        (job(launcher=launcher(mounts_discovery=False), policy=Policy(delete_without_discovery=True)), False, True),
    ],
)
def test_a_running_job_that_cannot_learn_of_a_change_loses_no_worker(
    view: JobView, sees: bool, may_delete: bool
) -> None:
    assert (derive(view, now=NOW).launcher.sees_hosts, derive(view, now=NOW).launcher.may_lose_workers) == (
        sees,
        may_delete,
    )


POD = "j-worker-2"
LEFT = Memory(left={POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=NOW)}, removed_at=NOW)
BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)
UNKNOWN = Probe(asked_at=NOW)


def leaving(probe: Probe, **facts: Any) -> JobView:
    """The third of three workers left the list at NOW, and the launcher was touched at once."""
    workers = (worker(0), worker(1), worker(2, probe=probe, **facts))
    return shown(job(2, workers=workers, config=config(pods(0, 1), memory=LEFT)), at=NOW)


def touches(view: JobView, *, seconds: int) -> list[int]:
    """After how many seconds the launcher is touched while nothing else changes."""
    found = []
    for second in range(seconds):
        touch = refresh(view, now=NOW + second)
        if touch is not None:
            assert refresh(touched(view, touch), now=NOW + second) is None
            view = touched(view, touch)
            found.append(second)
        # A repetition leaves the time from which the drain counts as it is.
        assert derive(view, now=NOW + second).launcher.shown_at == NOW
    return found


def touched(view: JobView, touch: RefreshLauncher) -> JobView:
    return replace(view, launcher=launcher(refreshed=touch.digest))


@pytest.mark.parametrize(
    ("view", "at"),
    [
        (leaving(BUSY), [5, 15, 35, 75]),
        # Exec cannot tell, so a rank may run there.
        (leaving(UNKNOWN), [5, 15, 35, 75]),
        (leaving(BUSY, opaque=True), [5, 15, 35, 75]),
        (leaving(replace(BUSY, idle_at=NOW + 1)), []),
        (leaving(BUSY, running=False, ready_at=None, terminated=True), []),
        (leaving(BUSY, deleting=True), []),
        (leaving(BUSY, running=False, ready_at=None, node="n"), []),
    ],
)
def test_a_launcher_is_touched_again_while_a_rank_may_run_in_a_leaving_worker(view: JobView, at: list[int]) -> None:
    assert touches(view, seconds=600) == at


def test_at_rest_nothing_is_touched_again() -> None:
    assert touches(shown(job(3), at=NOW), seconds=600) == []


def test_after_a_pause_of_ours_it_is_touched_once() -> None:
    touch = refresh(leaving(BUSY), now=NOW + 40)
    assert touch is not None
    assert touch.again == 3
    after = touched(leaving(BUSY), touch)
    assert config_map.refresh(derive(after, now=NOW + 40), after.config or config([])) == (None, NOW + 75)


def test_a_repetition_wakes_us_where_exec_cannot_look() -> None:
    assert decide(leaving(UNKNOWN, opaque=True), now=NOW + 1).wake_at == NOW + 5


@pytest.mark.parametrize("again", ["x", "1.5", "9" * 5000])
def test_a_repetition_that_we_did_not_write_is_no_touch(again: str) -> None:
    view = leaving(BUSY)
    assert view.launcher is not None
    foreign = replace(view, launcher=launcher(refreshed=f"{view.launcher.refreshed}+{again}"))
    assert derive(foreign, now=NOW + 1).launcher.shown_at is None


def refused(view: JobView, *, times: int, at: float) -> JobView:
    """The same job after so many touches in a row were refused."""
    assert view.launcher is not None
    tries = Tries(count=times, at=at, uid=view.launcher.ref.uid)
    return replace(
        view, launcher=replace(view.launcher, refused=Refusal(change="", tries=tries, reason="a policy says no"))
    )


@pytest.mark.parametrize(("times", "wait"), [(1, 1.0), (2, 2.0), (3, 5.0), (6, 60.0), (7, 60.0), (1000, 60.0)])
def test_a_touch_that_was_refused_is_tried_again_later_and_later(times: int, wait: float) -> None:
    view = refused(job(known=False), times=times, at=NOW)
    assert refresh(view, now=NOW + wait - 0.1) is None
    assert decide(view, now=NOW).wake_at == NOW + wait
    touch = refresh(view, now=NOW + wait)
    assert touch is not None
    assert (touch.tries.count, touch.tries.at) == (times + 1, NOW + wait)


def test_a_refused_touch_holds_up_nothing_else_and_no_worker_counts_as_told() -> None:
    left = Left(at=LONG_AGO, pod=worker(2).ref.fingerprint)
    memory = Memory(removed_at=LONG_AGO, left={"j-worker-2": left})
    view = job(3, known=False, replicas=2, config=config(pods(0, 1), memory=memory))
    due = decide(refused(view, times=2, at=NOW), now=NOW)
    assert [type(action).__name__ for action in due.actions] == ["TellUser"]
    assert due.looks == ()

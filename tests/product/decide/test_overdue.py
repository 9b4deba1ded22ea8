"""Quota that is wanted back, and jobs that stop, although the launcher cannot be told who leaves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.decide import decide, derive, overdue
from mpijob_elastic.decide.actions import (
    DeleteLauncher,
    DeleteWorkers,
    RefreshLauncher,
    WriteConfig,
)
from mpijob_elastic.decide.state import REFUSED_OFTEN
from mpijob_elastic.model.job import Deleted
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, PodFacts, Probe, RefusedTouch
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.names import SUSPEND
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    config,
    failed,
    job,
    launcher,
    left,
    pending,
    pods,
    ref,
    worker,
)
from tests.product.decide.plans import does, removals
from tests.queues import GATES, granted, preempted, queue, training

# The default of the drain-timeout, in seconds.
TIMEOUT = 60.0
BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)
TRAINED = Memory(added_at=LONG_AGO)
TOO_LARGE = "it has more than 15,000 fields or list items"
REFUSED = {WriteConfig: "a policy says no"}


def wanted_back(**facts: Any) -> Story:
    """Two of the least and two extras train; Kueue wants the quota of the last back."""
    facts = {"config": config(pods(0, 1, 2, 3), memory=TRAINED), **facts}
    found = (
        granted(ready=True),
        granted("j-worker-2", workers=1, ready=True),
        preempted("j-worker-3"),
    )
    return training(*(worker(n, probe=BUSY) for n in range(4)), found=found, size=4, **facts)


def untouched(seen_for: float | None) -> Story:
    """The last worker has left the list, and the API server refuses to touch the launcher."""
    gone = Memory(left={"j-worker-3": left("j-worker-3", ago=300.0)}, removed_at=NOW - 300.0)
    view = wanted_back(config=config(pods(0, 1, 2), memory=gone), hindered_for=seen_for).unshown()
    assert view.config is not None
    tries = Tries(count=REFUSED_OFTEN, at=NOW, uid="uid-of-j-launcher")
    return view.launched(refused=RefusedTouch(change=view.config.digest, tries=tries, reason="no"))


def hiding(*indices: int, **facts: Any) -> dict[str, Any]:
    """The pods of these workers, -1 for the launcher, cannot be read."""
    found = [names.launcher("j") if n < 0 else names.worker("j", n) for n in indices]
    hidden = {
        name: PodFacts(
            **{
                "metadata": ref(name),
                "role": "",
                "phase": "Running",
                "created_at": LONG_AGO,
                "deleting": False,
                "containers": (),
                **facts,
            }
        )
        for name in found
    }
    return {"unread": {f"Pod {name}": TOO_LARGE for name in found}, "hidden": hidden}


@pytest.mark.parametrize(
    ("seen_for", "due"),
    [
        pytest.param(None, "publish 0 1 2 (Draining)", id="nobody measures"),
        pytest.param(0.0, "publish 0 1 2 (Draining); wake 60", id="just refused"),
        pytest.param(59.0, "publish 0 1 2 (Draining); wake 1", id="a second before"),
        pytest.param(60.0, "publish 0 1 2 (Draining); delete 3:timeout", id="over"),
    ],
)
def test_quota_comes_back_although_the_host_list_cannot_be_written(
    seen_for: float | None, due: str
) -> None:
    view = wanted_back(refused=REFUSED, hindered_for=seen_for)
    assert does(view, but="say touch probe") == due


def test_a_policy_of_the_job_says_how_long() -> None:
    view = wanted_back(policy=Policy(min_replicas=2, drain_timeout=5.0), refused=REFUSED)
    assert removals(view.but(hindered_for=4.9)) == ()
    [gone] = removals(view.but(hindered_for=5.0))
    assert gone.worker.name == "j-worker-3"


def test_quota_comes_back_although_the_launcher_cannot_be_touched() -> None:
    assert "delete" not in does(untouched(None))
    assert "delete" not in does(untouched(59.0))
    [gone] = removals(untouched(60.0))
    assert (gone.worker.name, gone.outcome, gone.grace) == ("j-worker-3", "timeout", 1)
    assert gone.note.warning
    assert "for its drain-timeout of 1m the launcher could not be told" in gone.note.message


def test_a_worker_that_leaves_for_the_size_waits_as_long_as_it_takes() -> None:
    """Nobody waits for its quota."""
    view = job(3, config=config(pods(0, 1, 2), memory=TRAINED), refused=REFUSED)
    assert removals(view.but(replicas=2, hindered_for=3600.0)) == ()
    assert not overdue.is_hindered(derive(view.but(replicas=2), now=NOW))


def test_others_that_leave_in_order_are_deleted_meanwhile() -> None:
    """One left the list for the size, and has drained; the quota of another is overdue."""
    gone = Memory(left={"j-worker-2": left("j-worker-2", ago=30.0)}, removed_at=NOW - 30.0)
    view = wanted_back(
        config=config(pods(0, 1, 3), memory=gone), refused=REFUSED, hindered_for=60.0
    )
    view = view.pod(2, probe=Probe(idle_at=NOW - 20.0, asked_at=NOW - 20.0)).but(parked=(2,))
    deleted = {one.worker.name: one.outcome for one in removals(view.shown(at=NOW - 30.0))}
    assert deleted == {"j-worker-2": "drained", "j-worker-3": "timeout"}


SUSPENDED: dict[str, Any] = {"suspended_by": f"annotation {SUSPEND}"}


def test_a_job_stops_although_its_host_list_cannot_be_written() -> None:
    view = job(3, config=config(pods(0, 1, 2), memory=TRAINED), refused=REFUSED, **SUSPENDED)
    assert "delete launcher" not in does(view.but(hindered_for=59.0))
    assert "delete launcher, suspended" in does(view.but(hindered_for=60.0))


def test_the_workers_of_a_stopped_job_go_although_they_are_still_listed() -> None:
    """The next launcher waits at its gate, so nobody reads the list."""
    next_one = launcher(LauncherPhase.WAITING, gates=(names.GATE_SUSPENDED,), created_at=NOW)
    stopped = job(2, launcher=next_one, refused=REFUSED, known=False, **SUSPENDED)
    assert removals(stopped.but(hindered_for=59.0)) == ()
    gone = removals(stopped.but(hindered_for=60.0))
    assert [(one.worker.index, one.outcome) for one in gone] == [(1, "suspended"), (0, "suspended")]


@pytest.mark.parametrize(("seen_for", "deleted"), [(None, []), (59.0, []), (60.0, ["j-worker-3"])])
def test_a_pod_that_cannot_be_read_keeps_no_quota_of_another(
    seen_for: float | None, deleted: list[str]
) -> None:
    view = wanted_back(**hiding(1), hindered_for=seen_for).without(1)
    assert [one.worker.name for one in removals(view)] == deleted
    assert overdue.is_hindered(derive(view, now=NOW))
    assert "publish" not in does(view)


def test_nor_its_own() -> None:
    view = wanted_back(**hiding(3)).without(3)
    assert removals(view) == ()
    [gone] = removals(view.but(hindered_for=60.0))
    assert (gone.worker.name, gone.worker.ref.uid) == ("j-worker-3", "uid-of-j-worker-3")
    assert gone.note.reason == "DrainTimeout"


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"gates": ("unread",)}, id="it waits at a gate"),
        pytest.param({"phase": "Failed"}, id="it has ended"),
        pytest.param({"deleting": True}, id="it is being deleted"),
        pytest.param({"created_at": NOW - 4.0}, id="it is new"),
    ],
)
def test_what_cannot_be_read_is_deleted_once(facts: dict[str, Any]) -> None:
    view = wanted_back(**hiding(3, **facts), hindered_for=3600.0).without(3)
    assert removals(view) == ()


@pytest.mark.parametrize("seen_for", [59.0, 60.0])
def test_a_launcher_that_cannot_be_read_keeps_no_job_from_stopping(seen_for: float) -> None:
    view = job(2, launcher=None, known=False, **hiding(-1), **SUSPENDED, hindered_for=seen_for)
    due = does(view, but="say wake")
    expected = "delete launcher, suspended; delete 1:suspended 0:suspended"
    assert due == (expected if seen_for >= TIMEOUT else "nothing")


def test_a_launcher_that_was_made_a_moment_ago_goes_as_soon_as_it_may() -> None:
    new = hiding(-1, created_at=NOW - 4.0)
    view = job(2, launcher=None, known=False, **new, **SUSPENDED, hindered_for=TIMEOUT)
    assert does(view, but="say") == "delete 1:suspended 0:suspended; wake 1"
    later = hiding(-1, created_at=NOW - 5.0)
    assert does(view.but(**later), but="say").startswith("delete launcher, suspended")


def test_what_cannot_be_read_and_comes_back_is_deleted_ever_later() -> None:
    """As the deletions of every other step (pace)."""
    again = {names.launcher("j"): Deleted(count=6, ago=1.0)}
    hidden = job(2, launcher=None, known=False, **hiding(-1), **SUSPENDED, hindered_for=TIMEOUT)
    assert does(hidden.but(deleted=again), but="say") == "delete 1:suspended 0:suspended; wake 39"


def test_nor_does_a_worker() -> None:
    view = job(2, **hiding(1), **SUSPENDED, hindered_for=60.0).without(1)
    assert does(view, but="say wake") == "delete launcher, suspended; delete 1:timeout"


@pytest.mark.parametrize(
    "absent",
    [
        pytest.param({"config": None}, id="no ConfigMap of its own"),
        pytest.param({"role": None}, id="no Role that allows exec"),
        pytest.param({"size_known": False}, id="no size"),
    ],
)
def test_a_job_without_what_a_list_needs_stops_and_gives_quota_back(absent: dict[str, Any]) -> None:
    stops = job(2, **SUSPENDED).but(**absent)
    assert overdue.is_hindered(derive(stops, now=NOW))
    assert "delete launcher" not in does(stops.but(hindered_for=59.0))
    assert "delete launcher, suspended" in does(stops.but(hindered_for=60.0))
    [gone] = removals(wanted_back().but(**absent, hindered_for=60.0))
    assert gone.worker.name == "j-worker-3"


def test_a_pod_of_another_name_is_no_part_of_the_job() -> None:
    """Whoever makes it may make any job its owner."""
    strange = {"Pod junk": TOO_LARGE, "Pod j-worker-x": TOO_LARGE, "Pod k-worker-1": TOO_LARGE}
    shrunk = job(3, config=config(pods(0, 1, 2), memory=TRAINED)).but(replicas=2)
    assert does(shrunk.but(unread=strange), but="say") == does(shrunk)


# --- what has ended holds nothing, whatever finalizer keeps its pod


ZOMBIE: dict[str, Any] = {"deleting": True}


def test_a_worker_that_has_ended_holds_no_quota() -> None:
    workers = (worker(0), worker(1), worker(2), failed(3, **ZOMBIE))
    found = (
        granted(ready=True),
        granted("j-worker-2", workers=1, ready=True),
        preempted("j-worker-3"),
    )
    view = training(*workers, found=found, size=4, config=config(pods(0, 1, 2), memory=TRAINED))
    assert "give back 3" in does(view)
    running = training(*workers[:3], worker(3, **ZOMBIE), found=found, size=4, config=view.config)
    assert "give back" not in does(running)


def test_a_surplus_worker_that_has_ended_asks_for_no_quota() -> None:
    workers = (worker(0), worker(1), failed(2, **ZOMBIE))
    found = (granted(ready=True), granted("j-worker-2", workers=1))
    view = training(*workers, found=found, size=2, config=config(pods(0, 1), memory=TRAINED))
    assert "withdraw 2" in does(view)


def test_a_stopped_job_gives_its_quota_back_beside_a_worker_that_has_ended() -> None:
    held = launcher(LauncherPhase.WAITING, gates=GATES, created_at=NOW - 60.0)
    base = granted(evicted=True, said="Preempted to accommodate a workload")
    facts: dict[str, Any] = {"launcher": held, "known": False, "config": config([])}
    facts["queue"] = queue(base)
    for last, due in ((failed(1, **ZOMBIE), True), (worker(1, **ZOMBIE), False)):
        view = job(2, workers=(pending(0, gates=GATES), last), **facts)
        assert ("give back launcher" in does(view)) is due


@given(
    stops=st.booleans(),
    ends=st.booleans(),
    refused=st.sampled_from([{}, REFUSED, {RefreshLauncher: "no"}]),
    seen_for=st.sampled_from([None, 0.0, 59.9, 60.0, 3600.0]),
    hides=st.sets(st.integers(-1, 3), max_size=2),
    size=st.integers(2, 4),
    elastic=st.booleans(),
)
def test_nobody_is_deleted_untold_but_for_what_somebody_waits_for(
    stops: bool,
    ends: bool,
    refused: dict[type, str],
    seen_for: float | None,
    hides: set[int],
    size: int,
    elastic: bool,
) -> None:
    """Safety rule 2: listed workers, and pods that nobody could look into, go only if they are overdue."""
    view = wanted_back(refused=refused, hindered_for=seen_for, **hiding(*hides)).without(*hides)
    view = view.but(replicas=size, **(SUSPENDED if stops else {}))
    if not ends:
        view = view.but(queue=queue(granted(ready=True)))
    if -1 in hides:
        view = view.but(launcher=None)
    if not elastic:
        view = view.plain()
    state = derive(view, now=NOW)
    is_over = elastic and (stops or ends) and seen_for is not None and seen_for >= TIMEOUT
    assert state.overdue == is_over
    for one in removals(view):
        assert is_over
        assert stops or one.worker.name == "j-worker-3"
    due = [type(action) for action in decide(view, now=NOW).actions]
    assert DeleteLauncher not in due or (stops and (is_over or not view.published_pods))
    assert DeleteWorkers not in due or is_over

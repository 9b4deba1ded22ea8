"""Workers that are lost: failed ones, and those on a node that is gone; which are replaced, and how soon."""

from collections.abc import Mapping
from typing import Any

import pytest

from mpijob_elastic.decide import decide, drain, lost_ranks
from mpijob_elastic.decide.actions import DeleteWorkers, LookIntoLauncher, WriteConfig
from mpijob_elastic.decide.state import SETTLE, SKEW
from mpijob_elastic.model.goodput import Ledger, Span
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import MOST_TRIES, Exec, HeldExecs
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    pending,
    pods,
    role,
    worker,
)
from tests.counted import calls
from tests.product.decide.plans import change, does, given_up, note, remembered, state
from tests.product.decide.test_ledger import told
from tests.simulated_writes import apply, run

[POD] = pods(1)
BLIND = launcher(mounts_discovery=False)
DELIVERING = launcher(LauncherPhase.DELIVERING)
NO_REPLACEMENT = Policy(replace_failed_workers=False)


def counted(count: int, *, ago: float = 0, uid: str = "now") -> Tries:
    return Tries(count=count, at=NOW - ago, uid=uid)


def broken(replaced: Tries | None = None, *, pod: Worker | None = None, **facts: Any) -> Story:
    """A job of two whose second worker has failed."""
    memory = Memory(replaced={POD: replaced} if replaced else {})
    workers = (worker(0), pod or failed(1, uid="now"))
    return job(2, config=config(pods(0), memory=memory), workers=workers, **facts)


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        (broken(), True),
        (broken(policy=NO_REPLACEMENT), False),
        (broken(elastic=False), False),
        (broken(replicas=1), False),
        (broken(pod=failed(1, deleting=True)), False),
        (broken(pod=failed(1, succeeded=True)), True),  # no main process of a worker should end
        (broken(pod=pending(1)), False),
        (broken(pod=worker(1)), False),
        (broken(launcher=None), True),
        # Nothing is deleted from a running job that cannot learn of it.
        (broken(launcher=BLIND), False),
    ],
)
def test_which_failed_workers_are_replaced(view: JobView, wanted: bool) -> None:
    assert state(view).by_name[POD].failed is wanted


@pytest.mark.parametrize(
    ("view", "after"),
    [
        (broken(), counted(1)),
        (broken(counted(1, ago=60, uid="before")), counted(2)),
        (broken(counted(2, ago=60)), counted(2, ago=60)),
        # It lived for long in between, or was given up for an hour.
        (broken(counted(9, ago=1800, uid="before")), counted(1)),
        (broken(counted(8, ago=3600, uid="before")), counted(1)),
        # It could not be deleted for long: no new failure, so no new count.
        (broken(counted(2, ago=3600)), counted(2, ago=3600)),
        # It recovered, and is forgotten in time.
        (broken(counted(2, ago=60, uid="before"), pod=worker(1)), counted(2, ago=60, uid="before")),
        (broken(counted(2, ago=1860, uid="before"), pod=worker(1)), None),
    ],
)
def test_each_failed_incarnation_counts_once(view: JobView, after: Tries | None) -> None:
    assert remembered(view).replaced == ({POD: after} if after else {})


@pytest.mark.parametrize(
    ("replaced", "due"),
    [
        *(
            (counted(count), wait)
            for count, wait in ((1, 0), (2, 10), (3, 20), (4, 40), (6, 160), (7, 300))
        ),
        *((counted(count), 3600) for count in (8, 2000, 10**9)),
        (counted(1, ago=-3600), -NOW),  # a failure in the future is due now
        # Not before it is written down.
        (None, None),
        (counted(1, uid="before"), None),
    ],
)
def test_the_wait_grows_up_to_five_minutes_and_then_it_is_given_up_for_an_hour(
    replaced: Tries | None, due: float | None
) -> None:
    assert state(broken(replaced)).by_name[POD].due_at == (None if due is None else NOW + due)


@pytest.mark.parametrize("script", ["garbage", "", None])
def test_beside_a_list_that_cannot_be_read_all_failed_workers_are_replaced(
    script: str | None,
) -> None:
    """The list stays as it is until a worker is Ready, so nothing is written down."""
    unreadable = but(config(()), script=script, published=None, memory=None)
    stuck = job(2, config=unreadable, workers=(failed(0), failed(1, created_at=NOW - 4)))
    assert does(stuck) == "delete 0:failed; wake 6"
    assert does(stuck.without(0), but="say") == "wake 6"


def test_a_worker_that_is_given_up_is_told_and_left_as_it_is_for_an_hour() -> None:
    view = broken(counted(8))
    assert given_up(view) == (POD,)
    assert given_up(broken(counted(7))) == given_up(broken(counted(8, uid="before"))) == ()
    assert does(view) == "say WorkerGivenUp; wake 3600"
    assert does(view, now=NOW + 3600) == "delete 1:failed; say WorkerGivenUp"


def test_running_out_of_memory_is_named_with_what_helps() -> None:
    lost = failed(
        1, uid="now", out_of_memory=True, last_state="Failed; main exited with 137 (OOMKilled)"
    )
    told = note(broken(counted(1), pod=lost))
    assert (told.reason, told.warning) == ("WorkerReplaced", True)
    assert "ran out of memory (OOMKilled)" in told.message
    assert "resources.limits.memory" in told.message


GONE_AT = NOW - 1
NODE: Mapping[str, Any] = {"node": "gpu-7", "node_gone_at": GONE_AT}
CUT_OFF = worker(1, **NODE)
EXEC = Exec(pid=41, pod=POD, started_at=LONG_AGO)
GIVEN_UP = {EXEC: MOST_TRIES}


def lost(
    *,
    elders: tuple[int, ...] = (0,),
    pod: Worker = CUT_OFF,
    listed: tuple[int, ...] = (0, 1, 2),
    **facts: Any,
) -> Story:
    """A job of three that trains, when the node of worker 1 was deleted a moment ago.

    Rank 0 is on one of `elders`.
    """
    seen = config(pods(*listed), memory=Memory(elders=pods(*elders)))
    return job(3, **{"workers": (worker(0), pod, worker(2)), "config": seen, **facts})


def looked(view: Story, **held: Any) -> Story:
    """The job after a look into its launcher for every reason there is."""
    about = next(
        (one.about for one in decide(view, now=NOW).looks if isinstance(one, LookIntoLauncher)),
        frozenset(),
    )
    return view.launched(held=HeldExecs(asked_at=NOW, about=about, **held))


def unlisted(pod: Worker = CUT_OFF, **facts: Any) -> Story:
    """It has left the list."""
    return lost(listed=(0, 2), pod=pod, **facts)


REMOVED = "publish 0 2, lost 1 (HostsLost)"
STUCK = pending(1, deleting=True, ends_at=NOW + 30, **NODE)
THREATENED = (worker(0), CUT_OFF, worker(2, disruption="taint", node="n"))
BOTH_GONE = looked(lost(elders=(2,), workers=(worker(0), CUT_OFF, worker(2, **NODE))))
TWO = looked(lost(elders=(1,), replicas=2, workers=(worker(0), CUT_OFF), listed=(0, 1)))
FOUR = (worker(0), CUT_OFF, worker(2), worker(3))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        # It stays listed while the driver takes its ranks for alive.
        pytest.param(lost(), "nothing", id="not looked"),
        pytest.param(looked(lost()), REMOVED, id="none held"),
        pytest.param(looked(lost(), suspects=(EXEC,)), "nothing", id="found once"),
        pytest.param(looked(lost(), suspects=(EXEC,), frozen=(EXEC,)), "kill 41", id="found twice"),
        pytest.param(
            looked(lost(), suspects=(EXEC,), frozen=(EXEC,), tries=GIVEN_UP),
            "say FrozenExec",
            id="cannot be ended",
        ),
        pytest.param(looked(lost(), suspects=(EXEC,), tries=GIVEN_UP), REMOVED, id="ended"),
        pytest.param(
            looked(lost(), suspects=(but(EXEC, pod="j-worker-2"),)), REMOVED, id="another's"
        ),
        # Where rank 0 may be lost the others form again first, unless too few are left.
        pytest.param(BOTH_GONE, "wake 39", id="of two none leaves while the other may have rank 0"),
        pytest.param(TWO, "wake 39", id="one is left"),
        pytest.param(
            TWO.but(min_np_workers=2), "publish 0, lost 1 (HostsLost)", id="too few are left"
        ),
        pytest.param(
            looked(lost(elders=(1,), replicas=4, workers=FOUR, role=role(0, 1, 2, 3))),
            "wake 39",
            id="nobody joins",
        ),
        pytest.param(
            looked(lost(elders=(1,), policy=Policy(min_replicas=2), workers=THREATENED)),
            "say DisruptionHeld; wake 39",
            id="it does not let others leave",
        ),
        pytest.param(unlisted(policy=NO_REPLACEMENT), "nothing", id="it is not listed again"),
    ],
)
def test_what_is_done_about_a_node_that_is_gone(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_its_exec_is_looked_for_at_once() -> None:
    assert any(isinstance(look, LookIntoLauncher) for look in decide(lost(), now=NOW).looks)


@pytest.mark.parametrize("elders", [(1,), (0, 1), ()], ids=["surely", "perhaps", "unknown"])
@pytest.mark.parametrize(("timeout", "wait"), [(0, 40.0), (10, 20.0), (120, 40.0)])
def test_where_rank_0_may_be_lost_nothing_changes_until_the_others_have_formed_again(
    elders: tuple[int, ...], timeout: int, wait: float
) -> None:
    view = looked(lost(elders=elders, gloo_timeout=timeout))
    assert does(view) == f"wake {wait - 1:g}"
    assert does(view, now=GONE_AT + wait, but="wake") == REMOVED
    assert does(BOTH_GONE, now=GONE_AT + lost_ranks.REFORM) == "publish 0, lost 1 2 (HostsLost)"


def stepping(view: Story, *, among: int = 2, since: float = GONE_AT, ahead: float = 0.0) -> Story:
    """The job whose two other ranks have told that they step since a time, by clocks that are ahead."""
    line = told(
        since + SKEW + ahead + 1, asked_at=since + SKEW + 1, ranks=among, since=since + ahead
    )
    spans = {
        f"uid-of-{pod}": Span(
            weight=1, bound_at=LONG_AGO, listed_at=LONG_AGO, line=line, done_after=since
        )
        for pod in pods(0, 2)
    }
    return view.but(ledger=Ledger(uid="u", spans=spans))


TOLD_AT = GONE_AT + SKEW + 1


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(stepping(looked(lost(elders=(1,)))), REMOVED, id="they train again"),
        pytest.param(
            stepping(lost(elders=(1,))), "nothing", id="the driver takes its ranks for alive"
        ),
        pytest.param(
            stepping(looked(lost(elders=(1,))), among=3), "wake 34", id="in the ring before"
        ),
        pytest.param(
            stepping(looked(lost(elders=(1,))), since=GONE_AT - 7), "wake 34", id="before the loss"
        ),
        pytest.param(
            stepping(looked(lost(elders=(1,))), since=GONE_AT - 7, ahead=500),
            "wake 34",
            id="before the loss, by a clock ahead",
        ),
        pytest.param(
            stepping(
                looked(
                    lost(
                        elders=(1,),
                        replicas=4,
                        workers=FOUR,
                        listed=(0, 1, 2, 3),
                        role=role(0, 1, 2, 3),
                    )
                )
            ),
            "wake 34",
            id="one does not tell",
        ),
    ],
)
def test_nobody_waits_longer_once_the_others_tell_that_they_train_again(
    view: JobView, plan: str
) -> None:
    assert does(view, now=TOLD_AT) == plan


def test_the_others_are_looked_into_often_while_they_get_over_a_loss_if_they_tell() -> None:
    asked = Probe(busy_seen=True, busy_at=NOW, asked_at=NOW)
    view = looked(lost(elders=(1,))).pod(0, probe=asked).pod(2, probe=asked).pod(1, probe=asked)
    assert lost_ranks.probe(state(view, now=NOW + 1)).again_at == NOW + lost_ranks.LOOK_SELDOM
    telling = stepping(view, among=3)
    assert lost_ranks.probe(state(telling, now=NOW + 1)).again_at == NOW + lost_ranks.LOOK_FORMING
    many = tuple(worker(index, probe=asked, **(NODE if index == 1 else {})) for index in range(80))
    large = stepping(looked(lost(elders=(1,), workers=many, listed=tuple(range(80)))))
    assert lost_ranks.probe(state(large, now=NOW + 1)).again_at == NOW + lost_ranks.LOOK_SOON


def test_who_left_after_that_is_not_waited_for_again() -> None:
    at = GONE_AT + lost_ranks.REFORM
    left, done, rested_at = run(looked(lost(elders=(1,))), now=at)
    assert len([action for action in done if hasattr(action, "removals")]) == 1
    assert left.memory.hosts[POD].reformed
    back = worker(1, uid="new", created_at=rested_at, ready_at=rested_at)
    again = but(left, workers=(worker(0), back, worker(2)))
    assert state(again, now=rested_at + SETTLE).resume_at == 0.0
    whole, _, _ = run(again, now=rested_at + SETTLE)
    assert whole.host_of[POD] == f"{POD}.r1"
    assert not whole.memory.hosts[POD].reformed


@pytest.mark.parametrize(
    ("view", "deleted"),
    [
        (unlisted(), True),
        (lost(), False),
        (lost(listed=(1,)), True),  # the last host, for a list must not become empty
        (unlisted(pending(1, **NODE)), True),
        (unlisted(failed(1, **NODE)), True),
        (unlisted(failed(1, succeeded=True, **NODE)), True),
        # Nobody else confirms that it has ended.
        (unlisted(STUCK), True),
        (unlisted(STUCK, replicas=1), True),
        # No deletion helps while a finalizer holds it.
        (unlisted(but(STUCK, forced=True)), False),
        (unlisted(replicas=1), True),
        (unlisted(worker(1, node="gpu-7")), False),
        (unlisted(launcher=DELIVERING), True),
        (unlisted(launcher=None), True),
        (unlisted(elastic=False), False),
        (unlisted(policy=NO_REPLACEMENT), False),
        (unlisted(policy=NO_REPLACEMENT, replicas=1), True),
        (unlisted().configured(memory=None), False),
        (unlisted(launcher=BLIND), False),
    ],
)
def test_when_its_pod_is_deleted(view: JobView, deleted: bool) -> None:
    found = [one for one in drain.leave(state(view)).removals if one.worker.name == POD]
    assert [(one.outcome, one.grace) for one in found] == [("lost", 0)] * deleted


def test_the_words() -> None:
    replaced = (
        f"{POD} is being deleted: its node gpu-7 is gone; the operator recreates it elsewhere"
    )
    assert note(unlisted()).line == f"WorkerReplaced: {replaced}"
    assert (
        note(looked(lost())).line
        == f"HostsLost: {POD} removed from discover_hosts.sh: node gpu-7 is gone"
    )


def test_it_is_deleted_right_after_the_list_without_waiting_for_the_launcher() -> None:
    view = looked(lost())
    assert does(apply(view, change(view), now=NOW)) == "touch; delete 1:lost"


def test_twice_the_lost_nodes_take_twice_the_work() -> None:
    counts = []
    for size in (100, 200):
        gone = tuple(worker(index, **NODE) for index in range(1, size))
        execs = tuple(
            Exec(pid=index, pod=one.name, started_at=LONG_AGO) for index, one in enumerate(gone)
        )
        listed = config(pods(*range(size)), memory=Memory(elders=pods(0)))
        view = looked(
            job(size, workers=(worker(0), *gone), config=listed), suspects=execs, frozen=execs
        )
        with calls() as counted:
            plan = decide(view, now=NOW)
        assert not any(isinstance(action, WriteConfig) for action in plan.actions)
        counts.append(counted["__eq__"])
    assert counts[1] <= 2.5 * counts[0] + 100


def test_thirty_of_32_workers_lost_at_once_cost_two_changes_and_one_wait() -> None:
    lost = range(2, 32)
    view = but(job(32), workers=(worker(0), worker(1), *map(failed, lost)))
    gone, done, _ = run(view, now=NOW)
    assert [list(one.removed) for one in done if isinstance(one, WriteConfig) and one.removed] == [
        [*pods(*lost)]
    ]
    assert [len(one.removals) for one in done if isinstance(one, DeleteWorkers)] == [len(lost)]
    back = [
        worker(index, uid=f"new-{index}", created_at=NOW + 5, ready_at=NOW + 15) for index in lost
    ]
    whole, done, _ = run(but(gone, workers=(worker(0), worker(1), *back)), now=NOW + 15)
    assert [len(one.added) for one in done if isinstance(one, WriteConfig) and one.added] == [
        len(lost)
    ]
    assert len(whole.host_of) == 32
    assert whole.memory.added_at == NOW + 5 + lost_ranks.REFORM

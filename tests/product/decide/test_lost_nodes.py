"""A worker whose Node is gone leaves the list once the driver can bear it, and is deleted at once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, drain, rank0_loss
from mpijob_elastic.decide.actions import DeleteWorkers, LookIntoLauncher, WriteConfig
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model.execs import MOST_TRIES, Exec, Held
from mpijob_elastic.model.job import JobView, LauncherPhase, Worker
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, Story, config, failed, job, launcher, pending, pods, role, shown, worker
from tests.counted import calls
from tests.product.decide.plans import does, note
from tests.simulated_writes import apply, run

[POD] = pods(1)
GONE_AT = NOW - 1
NODE: Mapping[str, Any] = {"node": "gpu-7", "node_gone_at": GONE_AT}
LOST = worker(1, **NODE)
EXEC = Exec(pid=41, pod=POD, started_at=LONG_AGO)


def lost(
    *, elders: tuple[int, ...] = (0,), pod: Worker = LOST, listed: tuple[int, ...] = (0, 1, 2), **facts: Any
) -> Story:
    """A job of three that trains, when the node of worker 1 was deleted a moment ago. Rank 0 is on one of `elders`."""
    seen = config(pods(*listed), memory=Memory(elders=pods(*elders)))
    return job(3, **{"workers": (worker(0), pod, worker(2)), "config": seen, **facts})


def looked(view: Story, **held: Any) -> Story:
    """The job after a look into its launcher for every reason there is."""
    about = next((one.about for one in decide(view, now=NOW).looks if isinstance(one, LookIntoLauncher)), frozenset())
    return view.launched(held=Held(asked_at=NOW, about=about, **held))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(lost(), "nothing", id="not looked"),
        pytest.param(looked(lost()), "publish 0 2, lost 1 (HostsLost)", id="none held"),
        pytest.param(looked(lost(), suspects=(EXEC,)), "nothing", id="found once"),
        pytest.param(looked(lost(), suspects=(EXEC,), frozen=(EXEC,)), "kill 41", id="found twice"),
        pytest.param(
            looked(lost(), suspects=(EXEC,), frozen=(EXEC,), tries={EXEC: MOST_TRIES}),
            "say FrozenExec",
            id="cannot be ended",
        ),
        pytest.param(
            looked(lost(), suspects=(EXEC,), tries={EXEC: MOST_TRIES}), "publish 0 2, lost 1 (HostsLost)", id="ended"
        ),
        pytest.param(
            looked(lost(), suspects=(replace(EXEC, pod="j-worker-2"),)),
            "publish 0 2, lost 1 (HostsLost)",
            id="another's",
        ),
    ],
)
def test_it_stays_listed_while_the_driver_takes_its_ranks_for_alive(view: JobView, plan: str) -> None:
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
    assert does(view, now=GONE_AT + wait, but="wake") == "publish 0 2, lost 1 (HostsLost)"


def test_who_left_after_that_is_not_waited_for_again() -> None:
    at = GONE_AT + rank0_loss.REFORM
    left, done, rested_at = run(looked(lost(elders=(1,))), now=at)
    assert [type(action) for action in done].count(DeleteWorkers) == 1
    assert left.memory.hosts[POD].reformed
    back = worker(1, uid="new", created_at=rested_at, ready_at=rested_at)
    again = replace(left, workers=(worker(0), back, worker(2)))
    assert derive(again, now=rested_at + SETTLE).resume_at == 0.0
    whole, _, _ = run(again, now=rested_at + SETTLE)
    assert whole.host_of[POD] == f"{POD}.r1"
    assert not whole.memory.hosts[POD].reformed


def test_of_two_on_the_node_none_leaves_while_the_other_may_have_rank_0() -> None:
    view = looked(lost(elders=(2,), workers=(worker(0), LOST, worker(2, **NODE))))
    assert does(view) == "wake 39"
    assert does(view, now=GONE_AT + rank0_loss.REFORM) == "publish 0, lost 1 2 (HostsLost)"


def test_nobody_is_waited_for_where_too_few_are_left() -> None:
    two = looked(lost(elders=(1,), replicas=2, workers=(worker(0), LOST), listed=(0, 1)))
    assert does(two) == "wake 39"
    assert does(two.but(min_np_workers=2)) == "publish 0, lost 1 (HostsLost)"


def test_nobody_joins_while_rank_0_is_cut_off() -> None:
    view = looked(lost(elders=(1,), replicas=4, workers=(worker(0), LOST, worker(2), worker(3)), role=role(0, 1, 2, 3)))
    assert does(view) == "wake 39"
    assert derive(view, now=NOW).resume_at == GONE_AT + rank0_loss.REFORM


def test_a_worker_on_a_node_that_is_gone_does_not_let_others_leave() -> None:
    threatened = worker(2, disruption="taint", node="n")
    view = looked(
        lost(elders=(1,), pod=LOST, replicas=3, policy=Policy(min_replicas=2), workers=(worker(0), LOST, threatened))
    )
    assert does(view) == "say DisruptionHeld; wake 39"


def outcomes(view: JobView) -> list[tuple[str, str, int | None]]:
    found = drain.leave(derive(view, now=NOW)).removals
    return [(one.worker.name, one.outcome, one.grace) for one in found]


STUCK = pending(1, deleting=True, ends_at=NOW + 30, **NODE)


@pytest.mark.parametrize(
    ("view", "deleted"),
    [
        (lost(listed=(0, 2)), True),
        (lost(), False),
        (lost(listed=(1,)), True),  # the last host, for a list must not become empty
        (lost(listed=(0, 2), pod=pending(1, **NODE)), True),
        (lost(listed=(0, 2), pod=failed(1, **NODE)), True),
        (lost(listed=(0, 2), pod=failed(1, succeeded=True, **NODE)), False),
        # Nobody else confirms that it has ended.
        (lost(listed=(0, 2), pod=STUCK), True),
        (lost(listed=(0, 2), pod=replace(STUCK, index=1), replicas=1), True),
        # No deletion helps while a finalizer holds it.
        (lost(listed=(0, 2), pod=replace(STUCK, forced=True)), False),
        (lost(listed=(0, 2), replicas=1), True),
        (lost(listed=(0, 2), pod=worker(1, node="gpu-7")), False),
        (lost(listed=(0, 2), launcher=launcher(LauncherPhase.DELIVERING)), True),
        (lost(listed=(0, 2), launcher=None), True),
        (lost(listed=(0, 2), elastic=False), False),
        (lost(listed=(0, 2), policy=Policy(replace_failed_workers=False)), False),
        (lost(listed=(0, 2), policy=Policy(replace_failed_workers=False), replicas=1), True),
        (lost(listed=(0, 2), config=replace(config(pods(0, 2)), memory=None)), False),
        (lost(listed=(0, 2), launcher=launcher(mounts_discovery=False, names_discovery=True)), False),
    ],
)
def test_when_its_pod_is_deleted(view: JobView, deleted: bool) -> None:
    found = [one for one in outcomes(view) if one[0] == POD]
    assert found == ([(POD, "lost", 0)] if deleted else [])


def test_the_words() -> None:
    replaced = f"{POD} is being deleted: its node gpu-7 is gone; the operator recreates it elsewhere"
    assert note(lost(listed=(0, 2))).line == f"WorkerReplaced: {replaced}"
    assert note(looked(lost())).line == f"HostsLost: {POD} removed from discover_hosts.sh: node gpu-7 is gone"


def test_it_is_deleted_right_after_the_list_without_waiting_for_the_launcher() -> None:
    view = looked(lost())
    [change] = decide(view, now=NOW).actions
    assert does(apply(view, change, now=NOW)) == "touch; delete 1:lost"


def test_a_worker_on_a_node_that_is_gone_is_not_listed() -> None:
    view = shown(lost(listed=(0, 2), policy=Policy(replace_failed_workers=False)), at=LONG_AGO)
    assert does(view) == "nothing"


def test_twice_the_lost_nodes_take_twice_the_work() -> None:
    counts = []
    for size in (100, 200):
        gone = tuple(worker(index, **NODE) for index in range(1, size))
        execs = tuple(Exec(pid=index, pod=one.name, started_at=LONG_AGO) for index, one in enumerate(gone))
        listed = config(pods(*range(size)), memory=Memory(elders=pods(0)))
        view = looked(job(size, workers=(worker(0), *gone), config=listed), suspects=execs, frozen=execs)
        with calls() as counted:
            plan = decide(view, now=NOW)
        assert not any(isinstance(action, WriteConfig) for action in plan.actions)
        counts.append(counted["__eq__"])
    assert counts[1] <= 2.5 * counts[0] + 100

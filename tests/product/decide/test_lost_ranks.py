"""Workers whose rank is lost while their pod runs on: seen for long enough, while others train, and not too often."""

from collections.abc import Mapping
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive, lost_ranks
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from tests.builders import NOW, Story, but, config, job, launcher, named, pods, worker
from tests.product.decide.plans import change, does, given_up, note, those

POD = pods(1)[0]
BUSY = Probe(busy_seen=True, busy_at=NOW - 5, asked_at=NOW - 5)
LOST = Probe(
    busy_seen=True, busy_at=NOW - 80, idle_since=NOW - 35, idle_at=NOW - 5, asked_at=NOW - 5
)
MAX_NP = frozenset({"max_np"})
NEVER = but(LOST, busy_seen=False, busy_at=0.0, idle_since=NOW - 700)


def seen(probes: Mapping[int, Probe], *, tries: Tries | None = None, **facts: Any) -> Story:
    """A job of three that train, but for what the test says of some of them."""
    size = facts.pop("size", 3)
    workers = tuple(worker(index, probe=probes.get(index, BUSY)) for index in range(size))
    memory = Memory(renamed={POD: tries} if tries else {})
    return job(
        size, **{"workers": workers, "config": config(pods(*range(size)), memory=memory), **facts}
    )


def lost(view: JobView) -> tuple[str, ...]:
    """Published pods that are to come back under a new host name."""
    return those(view, lambda worker: worker.rank_lost)


def probed(view: JobView, *, now: float = NOW) -> tuple[tuple[Worker, ...], float | None]:
    """Published workers to probe now, and when to probe next."""
    action, at = lost_ranks.probe(derive(view, now=now))
    return (action.workers if action else ()), at


def lost_before(count: int, *, ago: float) -> Tries:
    return Tries(count=count, at=NOW - ago, uid=f"uid-of-{POD}")


@pytest.mark.parametrize(
    ("view", "is_lost"),
    [
        (seen({}), False),
        (seen({1: LOST}), True),
        (seen({1: but(LOST, idle_since=NOW - 34.9)}), False),
        (seen({1: LOST}, size=2), True),
        # Nobody saw that others went on without it.
        (seen({0: but(BUSY, busy_at=NOW - 35), 1: LOST, 2: but(BUSY, busy_at=NOW - 35)}), False),
        (seen({0: Probe(), 1: LOST, 2: Probe()}), False),
        # Most of them are idle: training ends, or begins.
        (seen({0: LOST, 1: LOST}), False),
        (seen({1: LOST}, size=1), False),
        # The last look is too old to be true now.
        (seen({1: but(LOST, idle_at=NOW - 61, idle_since=NOW - 99)}), False),
        (seen({1: but(LOST, idle_at=NOW + 60)}), False),
        # No rank was ever seen in it: that takes much longer, and is tried once.
        (seen({1: NEVER}), True),
        (seen({1: but(NEVER, idle_since=NOW - 604)}), False),
        (seen({1: NEVER}, tries=lost_before(1, ago=900)), False),
        # Horovod lets no more of them train.
        (seen({1: NEVER}, max_np_workers=2), False),
        (seen({1: LOST}, max_np_workers=3), True),
        # Nobody knows whether Horovod lets more of them train; but a rank that was seen is gone.
        (seen({1: NEVER}, unread_options=MAX_NP), False),
        (seen({1: LOST}, unread_options=MAX_NP), True),
        (seen({1: NEVER}, unread_options=frozenset({"np", "min_np"})), True),
        # The driver has started again, and starts all ranks again; or it is about to.
        (seen({1: LOST}, launcher=launcher(started_at=NOW - 60)), False),
        (seen({1: LOST}, launcher=launcher(started_at=None)), False),
        (seen({1: LOST}, launcher=launcher(started_at=NOW - 81)), True),
        (seen({1: NEVER}, launcher=launcher(started_at=NOW - 604)), False),
        (seen({1: NEVER}, launcher=launcher(started_at=NOW - 606)), True),
        # Nothing could be done about it.
        (seen({1: LOST}, elastic=False), False),
        (seen({1: LOST}, launcher=launcher(LauncherPhase.DELIVERING)), False),
        (seen({1: LOST}, config=but(config(pods(0, 1, 2)), kubexec="mine")), False),
    ],
)
def test_when_a_rank_is_lost(view: JobView, *, is_lost: bool) -> None:
    assert lost(view) == ((POD,) if is_lost else ())


@pytest.mark.parametrize("size", [2, 4, 20])
def test_ranks_that_a_new_driver_starts_at_once_are_not_lost_while_looks_come_in_turn(
    size: int,
) -> None:
    """Half of them were seen again; of the others the last look is older than their ranks."""
    others = dict.fromkeys(range(size // 2, size), LOST)
    view = seen(others, size=size)
    assert lost(view) == pods(*others)
    assert lost(view.launched(started_at=NOW - 8)) == ()


def test_several_that_were_lost_at_once_take_longer() -> None:
    long_ago = but(LOST, busy_at=NOW - 170, idle_since=NOW - 125)
    assert lost(seen({0: long_ago, 1: long_ago})) == pods(0, 1)
    shorter = but(long_ago, idle_since=NOW - 124.9)
    assert lost(seen({0: long_ago, 1: shorter})) == pods(0)
    nobody_trains = seen({0: long_ago, 1: long_ago, 2: long_ago})
    assert lost(nobody_trains) == ()


def test_where_processes_cannot_be_told_apart_nothing_is_concluded() -> None:
    view = seen({1: LOST}).pod(1, opaque=True)
    assert lost(view) == ()
    assert POD not in {worker.name for worker in probed(view, now=NOW + 1000)[0]}


def test_it_leaves_at_once_and_comes_back_under_a_new_name() -> None:
    view = seen({1: LOST})
    assert does(view) == "publish 0 2, lost 1 (RankLost)"
    memory = change(view).memory
    assert memory.hosts[POD] == named(POD, incarnation=1)
    assert memory.renamed[POD] == Tries(count=1, at=NOW, uid=f"uid-of-{POD}")
    left = view.but(config=config(pods(0, 2), memory=memory))
    assert does(left.unshown(), now=NOW + 1000) == "touch", (
        "the launcher has not been shown yet that it left"
    )
    rested = job(3, config=left.config)
    assert does(rested, now=NOW + 3) == "publish 0 1.r1 2 (HostsPublished HostRenamed)"
    assert change(rested, now=NOW + 3).memory.hosts[POD] == named(POD, incarnation=1)


@pytest.mark.parametrize(("count", "pause"), [(1, 0), (2, 30), (3, 60), (4, 120), (5, 240)])
def test_each_time_it_comes_back_later(count: int, pause: float) -> None:
    view = job(
        3,
        config=config(
            pods(0, 2), memory=Memory(renamed={POD: lost_before(count, ago=0)}, removed_at=NOW)
        ),
    )
    assert does(view, now=NOW + pause - 1 if pause else NOW) == f"wake {1 if pause else 3}"
    assert does(view, now=NOW + max(3, pause)) == "publish 0 1 2 (HostsPublished)"


def test_after_five_times_it_is_given_up_and_stays_as_it_is() -> None:
    view = seen({1: LOST}, tries=lost_before(5, ago=600))
    assert lost(view) == ()
    assert does(view) == "remember renamed"
    rested = view.but(config=config(pods(0, 1, 2), memory=change(view).memory)).shown()
    assert given_up(rested) == (POD,)
    assert does(rested, now=NOW + 50) == "say WorkerGivenUp; wake 3550"


@pytest.mark.parametrize(
    ("tries", "losses"),
    [
        (lost_before(5, ago=1799), 5),
        # It kept its rank for half an hour.
        (lost_before(5, ago=1800), 0),
        (lost_before(6, ago=3599), 6),
        (lost_before(6, ago=3600), 0),
        # Another pod has taken its place.
        (Tries(count=6, at=NOW, uid="older"), 0),
    ],
)
def test_what_is_forgiven(tries: Tries, losses: int) -> None:
    counted = lost_ranks.tries(derive(seen({}, tries=tries), now=NOW), ())
    assert (counted[POD].count if POD in counted else 0) == losses


def test_published_workers_are_looked_at_seldom_and_suspicious_ones_often() -> None:
    view = seen({})
    assert probed(view)[0] == ()
    assert probed(view)[1] == NOW - 5 + lost_ranks.LOOK_SELDOM
    due = probed(view, now=NOW + lost_ranks.LOOK_SELDOM)
    assert due[0] == view.workers
    assert due[1] is not None
    assert due[1] > NOW + lost_ranks.LOOK_SELDOM
    idle = seen({2: but(LOST, idle_since=NOW - 5)})
    soon = probed(idle, now=NOW + 5)
    # The idle worker, and a worker that trains, to know that training goes on.
    assert {worker.name for worker in soon[0]} == {*pods(0), *pods(2)}


def test_a_new_host_is_looked_at_often_until_a_rank_is_seen() -> None:
    fresh = config(pods(0, 1, 2), memory=Memory(added_at=NOW - 20))
    view = seen({1: Probe(asked_at=NOW - 10, idle_at=NOW - 10, idle_since=NOW - 10)}, config=fresh)
    assert [worker.name for worker in probed(view)[0]] == [POD]


@pytest.mark.parametrize(
    "view",
    [
        seen({}, elastic=False),
        seen({}, launcher=None),
        seen({}, launcher=launcher(LauncherPhase.DELIVERING)),
        seen({}, finished=True),
        seen({}, deleting=True),
        seen({}, foreign="another operator's"),
        seen({}, notices="HandedOver: to another operator"),
    ],
)
def test_where_nothing_could_be_done_nobody_is_looked_at(view: JobView) -> None:
    assert probed(view, now=NOW + 1000) == ((), None)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(seen({}, size=1), id="a single host"),
        pytest.param(seen({}, config=but(config(pods(0, 1, 2)), kubexec="mine")), id="no numbers"),
    ],
)
def test_where_no_rank_could_be_replaced_looks_are_only_for_progress(view: JobView) -> None:
    assert probed(view, now=NOW + lost_ranks.LOOK_SELDOM)[0] == ()
    assert probed(view, now=NOW + lost_ranks.PROBES_APART)[0]


def test_looking_is_no_part_of_a_plan() -> None:
    view = seen({0: Probe(), 1: Probe(), 2: Probe()})
    assert does(view) == "nothing"
    assert [worker.name for worker in probed(view)[0]] == [names.worker("j", i) for i in range(3)]


def test_a_worker_in_which_no_rank_was_seen_is_not_said_to_have_lost_one() -> None:
    unused = note(seen({1: NEVER}))
    assert (unused.reason, unused.warning) == ("HostUnused", False)
    assert "no rank seen for 10m" in unused.message


def test_an_answer_brings_about_no_question_while_others_are_waited_for() -> None:
    """One worker's exec hangs, so it stays due; the others, looked into a moment ago, are not asked again for that."""
    hangs, idle = (
        Probe(),
        Probe(busy_seen=True, busy_at=NOW - 40, idle_since=NOW - 5, idle_at=NOW, asked_at=NOW),
    )
    view = seen({0: hangs, 1: idle})
    assert [worker.name for worker in probed(view, now=NOW + 1)[0]] == [names.worker("j", 0)]


def test_in_a_job_of_any_size_each_worker_has_its_turn() -> None:
    """Until the job is decided on again, `act` looks into only so many of the workers that are due."""
    view, now, asked = seen({}, size=500), NOW + 60, set[str]()
    for _ in range(6):
        turns = {worker.name for worker in probed(view, now=now)[0][:100]}
        answered = but(BUSY, asked_at=now, busy_at=now)
        workers = [
            but(worker, probe=answered) if worker.name in turns else worker
            for worker in view.workers
        ]
        view, now, asked = but(view, workers=tuple(workers)), now + 10, asked | turns
    assert len(asked) == 500


@pytest.mark.parametrize(
    ("failed", "pause"), [(0, 31.3), (1, 31.3), (2, 62.6), (5, 500.8), (6, 600.0), (99, 600.0)]
)
def test_a_worker_that_does_not_answer_is_looked_at_seldom(failed: int, pause: float) -> None:
    view = seen(
        {
            index: Probe(busy_seen=True, asked_at=NOW, busy_at=NOW, failed=failed)
            for index in range(3)
        }
    )
    assert probed(view, now=NOW + pause - 1) == ((), NOW + pause)
    assert len(probed(view, now=NOW + pause)[0]) == 3


# Seconds from the time at which a look is due until it is made.
LAG = 0.02


@pytest.mark.parametrize(
    ("period", "lasts"), [(1, 0.3), (2, 0.5), (5, 1), (10, 0.2), (10, 2), (30, 2)]
)
def test_commands_of_a_kubelet_do_not_pass_for_a_rank_for_long(period: int, lasts: float) -> None:
    """An exec probe looks like a rank while it runs, and the first may begin at any time."""
    assert max(_found_after(period, lasts, tenth=tenth) for tenth in range(10)) < 200


def _found_after(period: int, lasts: float, *, tenth: int) -> float:
    """Return the seconds until a rank of three that has died counts as lost.

    Every `period` seconds a command that takes `lasts` seconds begins in its worker, first when so
    many tenths of the period have passed.
    """
    began = NOW + period * tenth / 10
    now, probes = NOW, dict.fromkeys(range(3), BUSY)
    while not those(seen(probes), lambda worker: worker.rank_lost, now=now):
        due, at = probed(seen(probes), now=now)
        for each in due:
            is_busy = each.index != 1 or (now - began) % period < lasts
            probes[each.index] = _asked(each.probe, now, is_busy=is_busy)
        assert at is not None
        now = max(now, at) + LAG
        assert now < NOW + 1000
    return now - NOW


def _asked(probe: Probe, now: float, *, is_busy: bool) -> Probe:
    """Return the result of one more look."""
    if is_busy:
        return Probe(busy_seen=True, busy_at=now, asked_at=now)
    idle_since = now if probe.idle_since is None else probe.idle_since
    return but(probe, idle_since=idle_since, idle_at=now, asked_at=now)

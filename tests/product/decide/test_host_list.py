"""The next host list, one step at a time; when the next may follow; and the one write of script and hostfile."""

from collections.abc import Callable
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide, host_list
from mpijob_elastic.decide.state import SETTLE, honest
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView, Published, Role, parse_script
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import LauncherPhase, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    JOB,
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
    ref,
    role,
    worker,
)
from tests.counted import Name, calls
from tests.product.decide.plans import change, does, notes, state

BUSY = Memory(added_at=NOW - 1)
SETTLED = NOW - 1 + SETTLE
READY = (worker(0), worker(1), worker(2))
NOT_READY = (worker(0), pending(1), worker(2))
BROKEN = (worker(0), failed(1), worker(2))
WAITING = launcher(LauncherPhase.WAITING)
SHRUNK = job(2).shrunk(from_=3, ago=10)
EDITED = "#!/bin/sh\n# mine\necho j-worker-0:1\n"


def listing(*published: int, memory: Memory | None = None, **facts: Any) -> Story:
    """A job of three with this list, which may list every worker that it has."""
    return job(
        **{"config": config(pods(*published), memory=memory), "role": role(*range(13)), **facts}
    )


def following(view: JobView) -> host_list.Next:
    return host_list.following(state(view))


@pytest.mark.parametrize(
    ("view", "hosts"),
    [
        (listing(0, 1, 2), (0, 1, 2)),
        (listing(0, 1), (0, 1, 2)),
        (listing(0, 1, 2, replicas=2), (0, 1)),
        # An addition waits while there is something to remove.
        (listing(0, 3, workers=(*READY, worker(3))), (0,)),
        (listing(0, 1, 2, workers=NOT_READY), (0, 2)),
        (listing(0, 1, 2, workers=BROKEN), (0, 2)),
        (listing(0, 1, 2, workers=(worker(0), worker(1, deleting=True), worker(2))), (0, 2)),
        (listing(0, 1, 2, workers=READY[:2]), (0, 1)),
        (listing(0, role=role(0, 2)), (0, 2)),
        (listing(0, 1, role=None), (0, 1)),
        # Nobody who could stay: the newcomers are added first.
        (listing(2, replicas=2), (0, 1, 2)),
        # Nobody at all: a host stays, best a host that lives.
        (listing(0, 1, 2, replicas=0), (0,)),
        (listing(0, 1, workers=(failed(0), pending(1))), (1,)),
        (listing(0, 1, workers=(failed(0), failed(1))), (0,)),
        (listing(0, workers=()), (0,)),
        (listing(workers=()), ()),
        # Without elasticity the operator's workers stay.
        (listing(0, 1, 2, replicas=1, elastic=False), (0, 1, 2)),
        # In numeric order.
        (listing(workers=tuple(map(worker, range(12))), replicas=12), range(12)),
        (listing(workers=tuple(map(worker, range(12))), replicas=11), range(11)),
        # A host that is no worker of this job is removed.
        (job(config=config(["stranger", *pods(0, 1, 2)])), (0, 1, 2)),
        # Nobody waits for a driver that cannot run, or that has lost a host.
        (listing(0, 1, memory=BUSY, launcher=None), (0, 1, 2)),
        (listing(0, 1, memory=BUSY, launcher=launcher(LauncherPhase.FINISHED)), (0, 1, 2)),
        (listing(0, 1, 2, memory=BUSY, workers=BROKEN), (0, 2)),
        # Nothing follows a change that the launcher was not shown, but for what is gone.
        (job(known=False, config=config(pods(0, 1))), (0, 1)),
        (job(known=False, config=config(pods(0, 1)), workers=BROKEN), (0,)),
        # A clock that is ahead.
        (listing(0, workers=(worker(0), worker(1, ready_at=NOW + 3600), pending(2))), (0, 1)),
    ],
)
def test_the_next_list(view: JobView, hosts: tuple[int, ...]) -> None:
    assert following(view).hosts == pods(*hosts)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(listing(0, 1, 2, memory=BUSY, replicas=2), id="removal"),
        pytest.param(listing(0, 1, 2, memory=BUSY, replicas=0), id="removal of all but one"),
        pytest.param(listing(0, 1, memory=BUSY), id="addition"),
        pytest.param(listing(2, memory=BUSY, replicas=2), id="addition before a removal"),
        pytest.param(listing(0, 1, 2, memory=BUSY, workers=NOT_READY), id="not ready"),
    ],
)
def test_a_change_waits_until_the_driver_has_followed_the_one_before(view: JobView) -> None:
    assert following(view) == host_list.Next(hosts=view.published_pods, wake_at=SETTLED)


@pytest.mark.parametrize(
    ("workers", "joining", "wake_at"),
    [
        # The rest of the scale-out may come in a moment.
        ((worker(0), worker(1, ready_at=NOW - 1), pending(2)), (0,), NOW - 1 + host_list.GATHER),
        ((worker(0), worker(1, ready_at=NOW - 2), pending(2)), (0, 1), None),
        ((worker(0), worker(1, ready_at=NOW - 1), worker(2, ready_at=NOW)), (0, 1, 2), None),
    ],
)
def test_workers_that_come_up_together_join_in_one_change(
    workers: tuple[Worker, ...], joining: tuple[int, ...], wake_at: float | None
) -> None:
    gathered = following(listing(0, workers=workers))
    assert (gathered.hosts, gathered.wake_at) == (pods(*joining), wake_at)


def test_a_driver_that_cannot_read_the_list_gets_one_at_once() -> None:
    view = listing(0, 1, memory=BUSY, workers=(worker(0), worker(1, ready_at=NOW), pending(2)))
    broken = view.configured(published=None, script="#!/bin/sh\nexit 1\n")
    assert following(broken).hosts == pods(0, 1)
    assert following(broken.but(launcher=WAITING)).hosts == ()


def test_a_list_never_gets_longer_than_is_read() -> None:
    size = MOST_WORKERS + 2
    found = following(job(size, config=config(()), role=role(*range(size))))
    assert found.hosts == pods(*range(MOST_WORKERS))
    assert parse_script(names.discover_hosts(list(found.hosts), slots=1)) is not None


@pytest.mark.parametrize(
    ("added_at", "removed_at", "shown_at", "settled"),
    [
        (LONG_AGO, LONG_AGO, LONG_AGO, LONG_AGO),
        (NOW - 1, LONG_AGO, LONG_AGO, NOW - 1),
        (LONG_AGO, NOW - 2, LONG_AGO, NOW - 2),
        (NOW - 9, NOW - 9, NOW - 1, NOW - 1),
        # Written before the clock was set back.
        (NOW + 3600, NOW - 2, LONG_AGO, NOW - 2),
    ],
)
def test_a_change_settles_after_it_was_written_and_shown(
    added_at: float, removed_at: float, shown_at: float, settled: float
) -> None:
    view = job(config=config(pods(0), memory=Memory(added_at=added_at, removed_at=removed_at)))
    assert state(view.shown(at=shown_at)).settled_at == settled + SETTLE


@pytest.mark.parametrize(
    ("view", "settled"),
    [
        # A launcher about to start is not shown a removal and an addition in one.
        (job(launcher=WAITING), NOW + SETTLE),
        (job(launcher=launcher(LauncherPhase.DELIVERING)), NOW + SETTLE),
        (job(launcher=None), 0.0),
    ],
)
def test_a_change_before_the_start_settles(view: Story, settled: float) -> None:
    changed = Memory(removed_at=NOW, added_at=NOW)
    assert state(view.but(config=config(pods(0), memory=changed))).settled_at == settled


@pytest.mark.parametrize(
    ("at", "believed"),
    [
        (0.0, 0.0),
        (999.0, 999.0),
        (1000.0, 1000.0),
        (1005.0, 1005.0),
        (1005.1, 0.0),
        (float("inf"), 0.0),
    ],
)
def test_a_time_is_believed_up_to_the_skew_of_two_clocks(at: float, believed: float) -> None:
    assert honest(at, now=1000.0) == believed


NEW = worker(1, ready_at=NOW - 1)
LATER, MUCH_LATER = (NOW - 1 + wait for wait in (host_list.GATHER, host_list.GATHER_TO_SAVE_RESETS))
GROWS = (worker(0), NEW, pending(2))


@pytest.mark.parametrize(
    ("view", "gathered"),
    [
        (job(), 0.0),
        (job(workers=GROWS), LATER),
        (job(workers=(worker(0), worker(1, ready_at=NOW + 3600), pending(2))), host_list.GATHER),
        (job(workers=(worker(0), NEW)), LATER),
        # A surplus worker that is Ready is not the worker that is missing.
        (job(workers=(worker(0), NEW, worker(3))), LATER),
        (listing(0, workers=GROWS, counts_resets=True), MUCH_LATER),
        (listing(0, workers=GROWS, counts_resets=True, min_np_workers=1), MUCH_LATER),
        (listing(0, workers=(worker(0), NEW, worker(2, ready_at=NOW)), counts_resets=True), 0.0),
        # Training waits for its least size, or has not begun: an addition costs no reset.
        (listing(0, workers=GROWS, counts_resets=True, min_np_workers=2), LATER),
        (listing(workers=GROWS, counts_resets=True), LATER),
    ],
)
def test_the_first_of_a_scale_out_waits_a_moment_for_the_rest(
    view: JobView, gathered: float
) -> None:
    assert host_list._gathered_at(state(view), [view.workers[1].name]) == gathered


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (job(), "nothing"),
        (SHRUNK, "probe 2; wake 50"),
        # A launcher that is recreated waits for each of these, so while a launcher trains they are
        # workers that run ...
        (job(workers=BROKEN), "publish 0 2, lost 1 (HostsLost)"),
        # ... and before, workers that the size asks for.
        (job(launcher=None, replicas=4), "allow 0 1 2 3; hostfile 0 1 2 3"),
        (job(launcher=WAITING, replicas=2), "publish 0 1 (Draining)"),
        (job(1, workers=(pending(0),)).configured(script=EDITED, published=None), "nothing"),
        (
            job(1, workers=(pending(0),), launcher=None).configured(script=EDITED, published=None),
            "publish nobody (HostListEdited)",
        ),
        (job(replicas=2, workers=NOT_READY), "publish 0, lost 1 (Draining HostsLost)"),
        (job(workers=(worker(0), worker(2))), "publish 0 2, lost 1 (HostsLost)"),
        (
            job(workers=(worker(0), worker(1, disruption="taint", node="n"), worker(2))),
            "publish 0 2 (Disruption)",
        ),
    ],
)
def test_what_is_written(view: JobView, plan: str) -> None:
    assert does(view, but="say") == plan


@pytest.mark.parametrize(
    ("view", "hosts"),
    [
        (job(workers=BROKEN), (0, 2)),
        (job(launcher=None, replicas=4), (0, 1, 2, 3)),
        (job(launcher=WAITING, replicas=2), (0, 1)),
        (job(elastic=False, config=config(pods(0, 1), hostfile=pods(0, 1, 2, 3))), (0, 1, 2, 3)),
    ],
)
def test_the_hostfile_is_kept_true(view: JobView, hosts: tuple[int, ...]) -> None:
    assert change(view).hostfile == names.hostfile(list(pods(*hosts)), slots=1)


@pytest.mark.parametrize(
    ("facts", "slots"), [({}, 2), ({"launcher": WAITING}, 4), ({"config": config([])}, 4)]
)
def test_slots_change_with_the_next_launcher_or_an_empty_list(
    facts: dict[str, Any], slots: int
) -> None:
    found = change(
        job(**{"slots": 4, "replicas": 2, "config": config(pods(0, 1, 2), slots=2), **facts})
    )
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=slots)


@pytest.mark.parametrize("script", [EDITED, "", None])
def test_an_unreadable_list_is_mended_with_all_that_is_ready(script: str | None) -> None:
    found = change(SHRUNK.configured(script=script, published=None))
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=1)
    # Whether the driver has seen the third worker in the edited list, nobody knows.
    assert "j-worker-2" in found.memory.left


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (job(config=config(pods(0))), "j-worker-2 added to discover_hosts.sh: 1 → 3 of 3"),
        (job(replicas=1), "3 → 1 of 1 desired workers; draining for at most 1m"),
        (job(workers=NOT_READY), "removed from discover_hosts.sh: not Ready"),
        (job(20, config=config(pods(0)), launcher=None), "j-worker-8 and 11 more"),
    ],
)
def test_the_user_reads_what_changed(view: JobView, words: str) -> None:
    assert words in notes(view)[0].message


def all_gone(size: int) -> JobView:
    hosts = tuple(map(Name, pods(*range(size))))
    return job(size, workers=()).configured(published=Published(hosts=hosts))


def half_gone(size: int) -> JobView:
    return but(all_gone(size), workers=tuple(worker(index) for index in range(0, size, 2)))


def all_join(size: int) -> JobView:
    counted = tuple(
        but(one, ref=but(one.ref, name=Name(one.name))) for one in map(worker, range(size))
    )
    return job(size, workers=counted, config=config(()), role=role(*range(size)))


@pytest.mark.parametrize("view", [all_gone, half_gone, all_join])
def test_twice_the_workers_take_twice_the_work(view: Callable[[int], JobView]) -> None:
    counts = []
    for size in (200, 400):
        found = view(size)
        with calls() as counted:
            assert decide(found, now=NOW).actions
        counts.append(counted["__eq__"])
    assert counts[1] <= 2.5 * counts[0] + 100


def up_to(most: int) -> Policy:
    return Policy(max_replicas=most)


@pytest.mark.parametrize(
    ("view", "grown"),
    [
        (job(), None),
        (job(replicas=4), range(4)),
        (job(replicas=12, role=role(10)), range(12)),
        # All sizes that the job may have, in one write.
        (job(policy=up_to(5)), range(5)),
        (job(policy=up_to(5), role=role(0, 1, 2, 3)), range(5)),
        (job(policy=up_to(5), role=role(*range(5))), None),
        (job(policy=up_to(2)), None),
        (job(max_np_workers=6), range(6)),
        (job(max_np_workers=6, policy=up_to(8)), range(8)),
        (job(policy=up_to(1_000_000)), range(host_list.MOST_AHEAD)),
        (job(policy=up_to(1_000_000), replicas=1_001, role=role(*range(1_000))), range(1_001)),
        (job(replicas=4, policy=up_to(4), role=role(0, 1, 2, 3)), None),
        # It never shrinks.
        (job(role=role(0, 1, 2, 3)), None),
        (job(replicas=2, workers=READY[:2]), None),
        (job(replicas=4, role=role(7)), (0, 1, 2, 3, 7)),
        (job(elastic=False, replicas=4), None),
        (job(elastic=False, policy=up_to(5)), None),
        # A name in the script alone gives no right to exec.
        (job(2, config=config([*pods(0, 1), "somebody-elses-pod"]), replicas=3), range(3)),
        # A rule without names would mean every pod.
        (job(3, replicas=0, workers=()), None),
    ],
)
def test_the_role_names_every_worker_that_the_job_may_get(
    view: JobView, grown: tuple[int, ...] | None
) -> None:
    assert view.role is not None
    write = host_list.grow_role(view, view.role)
    assert (write and write.exec_names) == (None if grown is None else pods(*grown))


def test_names_that_somebody_else_added_to_the_role_stay() -> None:
    theirs = Role(metadata=ref(JOB), exec_rule=1, exec_names=("helper", *pods(0)))
    assert does(job(2, role=theirs)) == "allow helper 0 1"

"""The next host list, one step at a time."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive, host_list
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import LauncherPhase
from mpijob_elastic.model.memory import Memory
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, pending, pods, role, worker

BUSY = Memory(added_at=NOW - 1)
SETTLED = NOW - 1 + SETTLE


def step(published: tuple[int, ...], *, memory: Memory | None = None, **facts: Any) -> host_list.Next:
    facts = {"role": role(*range(13)), **facts}
    return host_list.following(derive(job(config=config(pods(*published), memory=memory), **facts), now=NOW))


READY = (worker(0), worker(1), worker(2))


@pytest.mark.parametrize(
    ("published", "facts", "following"),
    [
        ((0, 1, 2), {}, (0, 1, 2)),
        ((0, 1), {}, (0, 1, 2)),
        ((0, 1, 2), {"replicas": 2}, (0, 1)),
        # An addition waits while there is something to remove.
        ((0, 3), {"workers": (*READY, worker(3))}, (0,)),
        ((0, 1, 2), {"workers": (worker(0), pending(1), worker(2))}, (0, 2)),
        ((0, 1, 2), {"workers": (worker(0), failed(1), worker(2))}, (0, 2)),
        ((0, 1, 2), {"workers": (worker(0), worker(1, deleting=True), worker(2))}, (0, 2)),
        ((0, 1, 2), {"workers": (worker(0), worker(1))}, (0, 1)),
        ((0,), {"role": role(0, 2)}, (0, 2)),
        ((0, 1), {"workers": READY, "role": None}, (0, 1)),
        # Nobody who could stay: the newcomers are added first.
        ((2,), {"replicas": 2}, (0, 1, 2)),
        # Nobody at all: a host stays, best a host that lives.
        ((0, 1, 2), {"replicas": 0}, (0,)),
        ((0, 1), {"workers": (failed(0), pending(1))}, (1,)),
        ((0, 1), {"workers": (failed(0), failed(1))}, (0,)),
        ((0,), {"workers": ()}, (0,)),
        ((), {"workers": ()}, ()),
        # Without elasticity the operator's workers stay.
        ((0, 1, 2), {"replicas": 1, "elastic": False}, (0, 1, 2)),
    ],
)
def test_the_next_list(published: tuple[int, ...], facts: dict[str, Any], following: tuple[int, ...]) -> None:
    assert step(published, **facts).hosts == pods(*following)


def test_hosts_stand_in_numeric_order() -> None:
    many = tuple(worker(index) for index in range(12))
    assert step((), workers=many, replicas=12).hosts == pods(*range(12))
    assert step((), workers=many, replicas=11).hosts == pods(*range(11))


def test_a_host_that_is_no_worker_of_this_job_is_removed() -> None:
    view = job(config=config(["stranger", *pods(0, 1, 2)]))
    assert host_list.following(derive(view, now=NOW)).hosts == pods(0, 1, 2)


@pytest.mark.parametrize(
    ("published", "facts"),
    [
        ((0, 1, 2), {"replicas": 2}),
        ((0, 1, 2), {"replicas": 0}),
        ((0, 1), {}),
        ((2,), {"replicas": 2}),
        ((0, 1, 2), {"workers": (worker(0), pending(1), worker(2))}),
    ],
    ids=["removal", "removal-of-all-but-one", "addition", "addition-before-a-removal", "not-ready"],
)
def test_a_change_waits_until_the_driver_has_followed_the_one_before(
    published: tuple[int, ...], facts: dict[str, Any]
) -> None:
    waiting = step(published, memory=BUSY, **facts)
    assert (waiting.hosts, waiting.wake_at) == (pods(*published), SETTLED)


@pytest.mark.parametrize("facts", [{"launcher": None}, {"launcher": launcher(LauncherPhase.FINISHED)}])
def test_nobody_waits_for_a_driver_that_cannot_run(facts: dict[str, Any]) -> None:
    assert step((0, 1), memory=BUSY, **facts).hosts == pods(0, 1, 2)


def test_a_host_that_is_gone_is_removed_at_once() -> None:
    assert step((0, 1, 2), memory=BUSY, workers=(worker(0), failed(1), worker(2))).hosts == pods(0, 2)


def test_nothing_is_published_that_follows_a_change_the_launcher_was_not_shown() -> None:
    view = job(known=False, config=config(pods(0, 1)))
    assert host_list.following(derive(view, now=NOW)) == host_list.Next(hosts=pods(0, 1))
    gone = replace(view, workers=(worker(0), failed(1), worker(2)))
    assert host_list.following(derive(gone, now=NOW)).hosts == pods(0)


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
    workers: Any, joining: tuple[int, ...], wake_at: float | None
) -> None:
    gathered = step((0,), workers=workers)
    assert (gathered.hosts, gathered.wake_at) == (pods(*joining), wake_at)


def test_a_worker_ready_by_a_clock_that_is_ahead_does_not_wait_for_that_time() -> None:
    ahead = worker(1, ready_at=NOW + 3600)
    assert step((0,), workers=(worker(0), ahead, pending(2))).hosts == pods(0, 1)


def test_a_driver_that_cannot_read_the_list_gets_one_at_once() -> None:
    broken = replace(config(pods(0, 1), memory=BUSY), published=None, script="#!/bin/sh\nexit 1\n")
    view = job(config=broken, workers=(worker(0), worker(1, ready_at=NOW), pending(2)))
    assert host_list.following(derive(view, now=NOW)).hosts == pods(0, 1)
    waiting = replace(view, launcher=launcher(LauncherPhase.WAITING, created_at=LONG_AGO))
    assert host_list.following(derive(waiting, now=NOW)).hosts == ()


def test_a_list_never_gets_longer_than_is_read() -> None:
    size = MOST_WORKERS + 2
    found = host_list.following(derive(job(size, config=config(()), role=role(*range(size))), now=NOW))
    assert found.hosts == pods(*range(MOST_WORKERS))
    assert parse_script(names.discover_hosts(list(found.hosts), slots=1)) is not None

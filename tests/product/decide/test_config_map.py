"""The one write of script, hostfile and memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide
from mpijob_elastic.model.hosts import Published
from mpijob_elastic.model.job import JobView, LauncherPhase
from tests.builders import NOW, config, failed, job, launcher, pending, pods, role, worker
from tests.counted import Name, calls
from tests.product.decide.plans import change, written

SHRUNK = job(2).shrunk(from_=3, ago=10)
EDITED = "#!/bin/sh\n# mine\necho j-worker-0:1\n"


def test_at_rest_nothing_is_written() -> None:
    assert written(job()) is None
    assert written(SHRUNK) is None


@pytest.mark.parametrize(
    ("facts", "hosts"),
    [
        # A launcher that is recreated waits for each of these, so while a launcher trains they are workers that run ...
        ({"workers": (worker(0), failed(1), worker(2))}, (0, 2)),
        # ... and before, workers that the size asks for.
        ({"launcher": None, "replicas": 4}, (0, 1, 2, 3)),
        ({"launcher": launcher(LauncherPhase.WAITING), "replicas": 2}, (0, 1)),
    ],
)
def test_the_hostfile_is_kept_true(facts: dict[str, Any], hosts: tuple[int, ...]) -> None:
    assert change(job(**facts)).hostfile == names.hostfile(list(pods(*hosts)), slots=1)


def test_the_hostfile_of_a_job_that_is_not_elastic_stays() -> None:
    seen = config(pods(0, 1), hostfile=pods(0, 1, 2, 3))
    found = change(job(elastic=False, config=seen))
    assert found.hostfile == seen.hostfile
    assert found.added == pods(2)


@pytest.mark.parametrize(
    ("facts", "slots"),
    [({"slots": 4}, 2), ({"slots": 4, "launcher": launcher(LauncherPhase.WAITING)}, 4), ({"slots": 2}, 2)],
)
def test_slots_change_with_the_next_launcher(facts: dict[str, Any], slots: int) -> None:
    found = change(job(replicas=2, config=config(pods(0, 1, 2), slots=2), **facts))
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=slots)


def test_slots_of_an_empty_list_are_those_asked_for() -> None:
    assert change(job(config=config([]), slots=4)).script.count(":4\n") == 3


@pytest.mark.parametrize("script", [EDITED, "", None])
def test_an_unreadable_list_is_mended_with_all_that_is_ready(script: str | None) -> None:
    found = change(SHRUNK.configured(script=script, published=None))
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=1)
    # Whether the driver has seen the third worker in the edited list, nobody knows.
    assert "j-worker-2" in found.memory.left


def test_an_unreadable_list_is_not_replaced_by_an_empty_one_under_a_running_driver() -> None:
    broken = replace(config(pods(0)), script=EDITED, published=None)
    view = job(1, workers=(pending(0),), config=broken)
    assert written(view) is None
    assert change(replace(view, launcher=None)).script == names.SCRIPT_HEADER


@pytest.mark.parametrize(
    ("facts", "reasons", "words"),
    [
        ({"config": config(pods(0))}, ["HostsPublished"], "j-worker-2 added to discover_hosts.sh: 1 → 3 of 3"),
        ({"replicas": 1}, ["Draining"], "3 → 1 of 1 desired workers; draining for at most 1m"),
        ({"workers": (worker(0), pending(1), worker(2))}, ["HostsLost"], "removed from discover_hosts.sh: not Ready"),
        ({"workers": (worker(0), pending(1), worker(2)), "replicas": 2}, ["Draining", "HostsLost"], "j-worker-2"),
    ],
)
def test_the_user_reads_what_changed(facts: dict[str, Any], reasons: list[str], words: str) -> None:
    notes = change(job(**facts)).notes
    assert [note.reason for note in notes] == reasons
    assert words in notes[0].message


@pytest.mark.parametrize(
    ("facts", "lost"),
    [
        ({"replicas": 1}, ()),
        ({"workers": (worker(0), pending(1), worker(2))}, pods(1)),
        ({"workers": (worker(0), worker(2))}, pods(1)),
        ({"workers": (worker(0), pending(1), worker(2)), "replicas": 2}, pods(1)),
        ({"workers": (worker(0), worker(1, disruption="taint", node="n"), worker(2))}, ()),
    ],
)
def test_who_was_not_asked_to_leave_is_lost(facts: dict[str, Any], lost: tuple[str, ...]) -> None:
    written = change(job(**facts))
    assert written.removed
    assert written.lost == lost


def test_a_long_list_is_cut() -> None:
    (note,) = change(job(20, config=config(pods(0)), launcher=None)).notes
    assert "j-worker-8 and 11 more" in note.message


def all_gone(size: int) -> JobView:
    listed = config(pods(*range(size)))
    hosts = tuple(map(Name, pods(*range(size))))
    return job(size, workers=(), config=replace(listed, published=Published(hosts=hosts)))


def half_gone(size: int) -> JobView:
    return replace(all_gone(size), workers=tuple(worker(index) for index in range(0, size, 2)))


def all_join(size: int) -> JobView:
    workers = (worker(index) for index in range(size))
    counted = tuple(replace(one, ref=replace(one.ref, name=Name(one.name))) for one in workers)
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

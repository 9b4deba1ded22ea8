"""The memory that is written with a change of the host list, and when it is written alone."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive, next_memory
from mpijob_elastic.model import memory_text
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import Config, LauncherPhase
from mpijob_elastic.model.memory import Left, Memory, Scale, Tries
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, left, named, pending, pods, role, shown, worker
from tests.product.decide.plans import change, written

LEFT = left("j-worker-2", ago=10)
SHRUNK = job(2).shrunk(from_=3, ago=10)


def test_a_removal_is_written_with_its_history() -> None:
    found = change(job(3, replicas=2, slots=1))
    assert (found.added, found.removed) == ((), pods(2))
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=1)
    assert found.hostfile == names.hostfile(list(pods(0, 1)), slots=1)
    hosts = {pod: named(pod) for pod in pods(0, 1, 2)}
    scale = Scale(before=0, after=2, at=NOW)
    gone = {"j-worker-2": left("j-worker-2", ago=0)}
    expected = Memory(left=gone, removed_at=NOW, scale=scale, hosts=hosts, elders=pods(0, 1, 2))
    assert found.memory == next_memory.signed(expected, script=found.script)


def test_an_addition_forgets_that_the_worker_had_left() -> None:
    found = change(SHRUNK.but(replicas=3))
    assert (found.added, found.removed) == (pods(2), ())
    assert found.memory.left == {}
    assert (found.memory.added_at, found.memory.removed_at) == (NOW, NOW - 10)


def test_a_pod_that_is_gone_is_remembered_for_a_while() -> None:
    gone = job(3, workers=(worker(0), worker(2)))
    assert change(gone).memory.left == {"j-worker-1": Left(pod="", at=NOW)}
    for at, kept in ((NOW - 599, True), (NOW - 600, False)):
        seen = config(pods(0, 2), memory=Memory(left={"j-worker-1": Left(pod="", at=at)}))
        found = change(job(3, workers=(worker(0), pending(2)), config=seen)).memory.left
        assert ("j-worker-1" in found) is kept


def test_since_when_the_launcher_knew_is_written_down_before_it_is_shown_something_else() -> None:
    seen = config(pods(0, 1), memory=Memory(left={"j-worker-2": LEFT}))
    view = job(2, workers=(worker(0), failed(1), worker(2)), config=seen)
    assert change(shown(view, at=NOW - 5)).memory.left["j-worker-2"] == Left(pod=LEFT.pod, at=LEFT.at, known_at=NOW - 5)
    unknown = replace(view, launcher=launcher())
    assert change(unknown).memory.left["j-worker-2"] == LEFT


def test_a_name_dropped_before_the_start_is_remembered() -> None:
    assert change(job(launcher=launcher(LauncherPhase.DELIVERING), replicas=2)).memory.dropped_at == NOW
    assert change(job(replicas=2)).memory.dropped_at == 0.0
    assert change(job(launcher=launcher(LauncherPhase.DELIVERING), replicas=4)).memory.dropped_at == 0.0


@pytest.mark.parametrize(
    ("seen", "facts", "remembers"),
    [
        (replace(config(pods(0, 1, 2)), memory=None), {}, True),
        (replace(config(pods(0, 1, 2)), memory=Memory()), {}, True),
        (replace(config(pods(0, 1, 2)), memory=None), {"elastic": False}, False),
        (replace(config([], hostfile=pods(0, 1, 2)), memory=None), {"launcher": None, "workers": ()}, False),
        (
            replace(config([], hostfile=pods(0, 1, 2)), memory=None),
            {"launcher": launcher(LauncherPhase.WAITING), "workers": (pending(0), pending(3))},
            True,
        ),
    ],
    ids=["lost", "unsigned", "not-elastic", "never-needed", "surplus"],
)
def test_a_list_without_a_history_gets_one(seen: Config, facts: dict[str, Any], remembers: bool) -> None:
    found = written(job(config=seen, **facts))
    assert (found is not None) is remembers
    assert (
        found is None
        or derive(job(config=replace(seen, script=found.script, memory=found.memory)), now=NOW).memory_known
    )


def test_without_a_history_everybody_who_is_not_in_the_list_has_left_now() -> None:
    lost = replace(config(pods(0)), memory=None)
    found = change(job(3, replicas=1, config=lost))
    assert found.memory.left == {pod: left(pod, ago=0) for pod in pods(1, 2)}
    # Also a pod that is gone, for another pod may come under its name.
    gone = change(job(3, replicas=1, config=lost, workers=(worker(0), worker(1))))
    assert gone.memory.left["j-worker-2"] == Left(pod="", at=NOW)


def test_what_is_written_can_be_read_whatever_the_role_names() -> None:
    """Else it would be written again and again."""
    unknown = replace(config(pods(0, 1)), memory=None)
    found = change(job(2, config=unknown, role=role(*range(MOST_WORKERS + 100)))).memory
    assert len(found.left) == MOST_WORKERS - 2
    assert memory_text.parse(memory_text.render(found)) == found


def test_a_worker_that_somebody_put_back_leaves_anew() -> None:
    theirs = config(pods(0, 1, 2))
    found = change(SHRUNK.configured(script=theirs.script, published=theirs.published).shown())
    assert found.memory.left == {"j-worker-2": Left(pod=LEFT.pod, at=NOW)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Memory(added_at=NOW + 60), Memory(added_at=NOW)),
        (Memory(removed_at=NOW + 60), Memory(removed_at=NOW)),
        (Memory(dropped_at=NOW + 60), Memory(dropped_at=NOW)),
        (
            Memory(left={"j-worker-2": Left(pod=LEFT.pod, at=NOW + 60)}),
            Memory(left={"j-worker-2": Left(pod=LEFT.pod, at=NOW)}),
        ),
    ],
    ids=["added", "removed", "dropped", "left"],
)
def test_after_the_clock_was_set_back_the_future_becomes_now(old: Memory, new: Memory) -> None:
    view = job(2, workers=(worker(0), worker(1), worker(2)), config=config(pods(0, 1), memory=old))
    found = change(view)
    expected = msgspec.structs.replace(new, hosts={pod: named(pod) for pod in pods(0, 1)})
    assert found.memory == next_memory.signed(expected, script=found.script)


def test_a_failure_is_counted_although_the_list_stays() -> None:
    view = job(3, workers=(worker(0), worker(1), failed(2)), config=config(pods(0, 1)))
    assert change(view).memory.replaced == {"j-worker-2": Tries(count=1, at=NOW, uid="uid-of-j-worker-2")}


def test_a_launcher_without_the_mount_is_counted() -> None:
    missed = job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False))
    assert change(missed).memory.launchers == Tries(count=1, at=NOW, uid="uid-of-j-launcher")


def test_the_last_scale_is_remembered_from_size_to_size() -> None:
    before = Scale(before=1, after=3, at=LONG_AGO)
    seen = config(pods(0, 1, 2), memory=Memory(scale=before))
    assert change(job(replicas=2, config=seen)).memory.scale == Scale(before=3, after=2, at=NOW)
    lost = job(config=seen, workers=(worker(0), worker(1), pending(2)))
    assert change(lost).memory.scale == before

"""Failed workers: which are replaced, how soon."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, drain
from mpijob_elastic.decide.actions import DeleteWorkers
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, pending, pods, worker
from tests.product.decide.plans import given_up, remembered

POD = "j-worker-1"


def view(replaced: Tries | None = None, *, lost: Worker | None = None, **facts: Any) -> JobView:
    memory = Memory(replaced={POD: replaced} if replaced else {})
    workers = (worker(0), lost or failed(1, uid="now"))
    return job(2, config=config(pods(0), memory=memory), workers=workers, **facts)


@pytest.mark.parametrize(
    ("lost", "facts", "wanted"),
    [
        (failed(1), {}, True),
        (failed(1), {"policy": Policy(replace_failed_workers=False)}, False),
        (failed(1), {"policy": Policy(replace_failed_workers=True), "elastic": False}, False),
        (failed(1), {"elastic": False}, False),
        (failed(1), {"replicas": 1}, False),
        (failed(1, deleting=True), {}, False),
        (failed(1, succeeded=True), {}, False),
        (pending(1), {}, False),
        (worker(1), {}, False),
        (failed(1), {"launcher": None}, True),
        # Nothing is deleted from a running job that cannot learn of it.
        (failed(1), {"launcher": launcher(mounts_discovery=False)}, False),
    ],
)
def test_which_workers_are_replaced(lost: Worker, facts: dict[str, Any], wanted: bool) -> None:
    assert derive(view(lost=lost, **facts), now=NOW).by_name[lost.name].failed is wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, Tries(count=1, at=NOW, uid="now")),
        (Tries(count=1, at=NOW - 60, uid="before"), Tries(count=2, at=NOW, uid="now")),
        (Tries(count=2, at=NOW - 60, uid="now"), Tries(count=2, at=NOW - 60, uid="now")),
        # It lived for long in between.
        (Tries(count=9, at=NOW - 1800, uid="before"), Tries(count=1, at=NOW, uid="now")),
        # It could not be deleted for long: no new failure, so no new count.
        (Tries(count=2, at=LONG_AGO, uid="now"), Tries(count=2, at=LONG_AGO, uid="now")),
    ],
)
def test_each_failed_incarnation_counts_once(before: Tries | None, after: Tries) -> None:
    assert remembered(view(before), now=NOW).replaced == {POD: after}


def test_a_worker_that_recovered_is_forgotten_in_time() -> None:
    counted = Tries(count=2, at=NOW - 60, uid="before")
    assert remembered(view(counted, lost=worker(1)), now=NOW).replaced == {POD: counted}
    assert remembered(view(counted, lost=worker(1)), now=NOW + 1800).replaced == {}


@pytest.mark.parametrize(
    ("count", "wait"), [(1, 0), (2, 10), (3, 20), (4, 40), (6, 160), (7, 300), (8, 3600), (2000, 3600), (10**9, 3600)]
)
def test_the_wait_grows_up_to_five_minutes_and_then_it_is_given_up_for_an_hour(count: int, wait: float) -> None:
    counted = view(Tries(count=count, at=NOW, uid="now"))
    assert derive(counted, now=NOW).by_name[POD].due_at == NOW + wait


def test_it_is_not_due_before_it_is_written_down() -> None:
    for counted in (view(), view(Tries(count=1, at=NOW, uid="before"))):
        assert derive(counted, now=NOW).by_name[POD].due_at is None


@pytest.mark.parametrize("script", ["garbage", "", None])
def test_beside_a_list_that_cannot_be_read_all_failed_workers_are_replaced(script: str | None) -> None:
    # The list stays as it is until a worker is Ready, so nothing is written down.
    unreadable = replace(config(()), script=script, published=None, memory=None)
    stuck = job(2, config=unreadable, workers=(failed(0), failed(1, created_at=NOW - 4)))
    [action] = decide(stuck, now=NOW).actions
    assert isinstance(action, DeleteWorkers)
    assert [removal.worker.name for removal in action.removals] == ["j-worker-0"]
    assert decide(replace(stuck, workers=(failed(1, created_at=NOW - 4),)), now=NOW).wake_at == NOW + 6


def test_a_failure_in_the_future_is_due_now() -> None:
    counted = view(Tries(count=1, at=NOW + 3600, uid="now"))
    assert derive(counted, now=NOW).by_name[POD].due_at == 0.0


def test_a_worker_that_is_given_up_is_told_and_left_as_it_is_for_an_hour() -> None:
    counted = view(Tries(count=8, at=NOW, uid="now"))
    assert given_up(counted) == (POD,)
    assert given_up(view(Tries(count=7, at=NOW, uid="now"))) == ()
    assert given_up(view(Tries(count=8, at=NOW, uid="before"))) == ()
    assert drain.leave(derive(counted, now=NOW + 3599)).removals == ()
    assert drain.leave(derive(counted, now=NOW)).wake_at == NOW + 3600
    [again] = drain.leave(derive(counted, now=NOW + 3600)).removals
    assert again.outcome == "failed"
    # The next failure counts from one again.
    assert remembered(view(Tries(count=8, at=NOW - 3600, uid="before")), now=NOW).replaced[POD].count == 1


def test_running_out_of_memory_is_named_with_what_helps() -> None:
    lost = failed(1, uid="now", out_of_memory=True, last_state="Failed; main exited with 137 (OOMKilled)")
    [removal] = drain.leave(derive(view(Tries(count=1, at=NOW, uid="now"), lost=lost), now=NOW)).removals
    assert (removal.note.reason, removal.note.warning) == ("WorkerReplaced", True)
    assert "ran out of memory (OOMKilled)" in removal.note.message
    assert "resources.limits.memory" in removal.note.message

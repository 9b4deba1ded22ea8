"""The state of each worker and of the launcher, derived in a look."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide.derive import derive
from mpijob_elastic.decide.state import Drain, Standing
from mpijob_elastic.model.job import JobView, Probe, Worker
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, pending, pods, shown, worker

POD = "j-worker-2"
LEFT = Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=NOW - 20)
TRAINS = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 1)
LOST = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 60, idle_since=NOW - 40, idle_at=NOW - 1)


def standing(view: JobView) -> Standing:
    """Return the standing of the third worker."""
    return derive(view, now=NOW).by_name[POD].standing


def third(last: Worker | None = None, **facts: Any) -> JobView:
    """A job of three whose third worker is `last`."""
    return job(3, workers=(worker(0, probe=TRAINS), worker(1, probe=TRAINS), last or worker(2)), **facts)


TOO_OFTEN = config(pods(0, 1), memory=Memory(replaced={POD: Tries(count=8, at=NOW, uid=f"uid-of-{POD}")}))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (third(), Standing.WANTED),
        (third(replicas=2), Standing.SURPLUS),
        (third(failed(2)), Standing.FAILED),
        (third(failed(2), config=TOO_OFTEN), Standing.GIVEN_UP),
        (third(failed(2), policy=Policy(replace_failed_workers=False)), Standing.ENDED),
        (third(failed(2, succeeded=True)), Standing.ENDED),
        (third(worker(2, deleting=True)), Standing.TERMINATING),
        (third(worker(2, probe=LOST)), Standing.RANK_LOST),
        (third(worker(2, disruption="taint", node="n")), Standing.GOING),
        (third(worker(2, disruption="taint", node="n"), policy=Policy(min_replicas=3)), Standing.HELD),
        (third(pending(2)), Standing.STARTING),
    ],
)
def test_what_a_worker_is_to_the_job(view: JobView, expected: Standing) -> None:
    assert standing(view) is expected


def drained(*, shown_at: float | None = NOW - 15, probe: Probe | None = None) -> Drain | None:
    """The drain of a third worker that left twenty seconds ago."""
    workers = (worker(0), worker(1), worker(2, probe=probe or Probe()))
    view = job(2, known=False, workers=workers, config=config(pods(0, 1), memory=Memory(left={POD: LEFT})))
    return derive(view if shown_at is None else shown(view, at=shown_at), now=NOW).by_name[POD].drain


def test_a_drain_counts_from_when_the_launcher_was_shown_the_list() -> None:
    assert drained() == Drain(since=NOW - 20, began=NOW - 15, deadline=NOW + 45)
    assert drained(shown_at=None) == Drain(since=NOW - 20)
    assert drained(probe=Probe(idle_at=NOW - 10, asked_at=NOW - 10)) == replace(
        drained() or Drain(since=0), drained=True
    )


def test_a_published_worker_does_not_drain() -> None:
    assert derive(job(3), now=NOW).by_name[POD].drain is None

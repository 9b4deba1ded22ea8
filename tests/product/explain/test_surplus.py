"""Workers that are too many."""

from dataclasses import replace

import pytest

from mpijob_elastic.explain.facts import Look
from mpijob_elastic.explain.findings import Level
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import NOW, config, job, pending, pods, role, shown, worker
from tests.product.explain.said import BUSY, IDLE, of_worker
from tests.queues import granted, preempted, training

LAST = "j-worker-2"


def leaving(*, refreshed: bool = True) -> JobView:
    """3→2: out of the list for ten seconds, the launcher refreshed a second later."""
    memory = Memory(left={LAST: Left(pod=pod_fingerprint(f"uid-of-{LAST}"), at=NOW - 10.0)}, removed_at=NOW - 10.0)
    view = job(3, replicas=2, config=config(pods(0, 1), memory=memory), known=False)
    return shown(view, at=NOW - 9.0) if refreshed else view


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (BUSY, "has been draining for 10s, at most 51s more; still running: python3"),
        (IDLE, "has been draining for 10s, at most 51s more; no process is left in it"),
        (Look(error="no rights"), "at most 51s more"),
        (None, "at most 51s more"),
    ],
)
def test_a_drain_says_since_when_until_when_and_what_still_runs(look: Look | None, words: str) -> None:
    found = of_worker(leaving(), 2, looks={LAST: look} if look else {})
    assert (found.cause, found.level) == ("draining", Level.WAITING)
    assert found.says.endswith(words)


def test_a_drain_begins_when_the_launcher_is_refreshed() -> None:
    assert "its drain-timeout starts once the launcher is refreshed" in of_worker(leaving(refreshed=False), 2).says


@pytest.mark.parametrize(
    ("view", "cause", "words"),
    [
        (job(3, replicas=2, elastic=False), "kept", "not elastic"),
        (job(3, replicas=2, workers=(worker(0), worker(1), worker(2, deleting=True))), "leaving", "being deleted"),
        (job(3, replicas=2), "leaving", "it leaves discover_hosts.sh next"),
        (job(3, replicas=2, config=config(pods(0, 1)), role=role(0, 1)), "leaving", "never trained"),
        (replace(leaving(), workers=(worker(0), worker(1), pending(2))), "leaving", "never trained"),
    ],
)
def test_others_that_are_too_many(view: JobView, cause: str, words: str) -> None:
    found = of_worker(view, 2)
    assert found.cause == cause
    assert found.level is not Level.WRONG
    assert words in found.says


def test_a_removal_that_must_wait_for_an_earlier_change() -> None:
    view = job(3, replicas=2, config=config(pods(0, 1, 2), memory=Memory(added_at=NOW - 1.0)), known=False)
    assert "leaves discover_hosts.sh in 2s" in of_worker(shown(view, at=NOW - 1.0), 2).says


def test_an_extra_that_kueue_wants_back_says_for_whom() -> None:
    found = (granted(), preempted("j-worker-2"))
    cause = of_worker(training(worker(0), worker(1), worker(2), found=found, size=3), 2)
    assert cause.says.startswith("j-worker-2 is an extra; it leaves discover_hosts.sh")
    assert cause.says.endswith("; Kueue wants its quota: Preempted to accommodate a workload")

"""Hold how much code a decision enters: a newcomer who follows it reads that many functions in that many files."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

import mpijob_elastic
from mpijob_elastic.decide import decide
from mpijob_elastic.model.job import JobView, Probe
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import NOW, config, failed, job, pods, role, shown, worker

ROOT = str(Path(mpijob_elastic.__file__).parent)
MOST_CALLS = 124
MOST_FILES = 14
BUSY = Probe(busy_seen=True, busy_at=NOW - 1, asked_at=NOW - 1)
LOST = Probe(busy_seen=True, busy_at=NOW - 60, asked_at=NOW - 1, idle_at=NOW - 1, idle_since=NOW - 40)


def left(ago: float) -> JobView:
    """A job of three workers; the last left the list `ago` seconds ago."""
    gone = Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - ago)
    memory = Memory(left={"j-worker-2": gone}, removed_at=NOW - ago)
    return shown(job(3, replicas=2, config=config(pods(0, 1), memory=memory)), at=NOW - ago)


VIEWS = {
    "at rest": job(3),
    "training": job(3, workers=tuple(worker(index, probe=BUSY) for index in range(3))),
    "growing": job(3, config=config(pods(0, 1)), role=role(0, 1)),
    "draining": left(5),
    "drained": left(65),
    "joining": job(3, config=config(pods(0, 1))),
    "shrinking": job(3, replicas=2),
    "disrupted": job(3, workers=(worker(0), worker(1), worker(2, disruption="taint", node="n"))),
    "rank lost": job(3, workers=(worker(0, probe=BUSY), worker(1, probe=BUSY), worker(2, probe=LOST))),
    "failed": job(3, workers=(worker(0), worker(1), failed(2))),
    "pod gone": job(3, workers=(worker(0), worker(1))),
    "pod replaced": job(3, workers=(worker(0), worker(1), worker(2, uid="new", created_at=NOW - 5))),
}


def entered(run: Callable[[], object]) -> list[str]:
    """Return the file of each call into a function of the product; comprehensions do not count."""
    files: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            files.append(code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return files


@pytest.mark.parametrize("name", VIEWS)
def test_a_decision_for_three_workers_stays_short(name: str) -> None:
    view = VIEWS[name]
    decide(view, now=NOW)  # the caches keep objects from look to look, and what was read of them
    files = entered(lambda: decide(replace(view), now=NOW))
    assert len(files) <= MOST_CALLS
    assert len(set(files)) <= MOST_FILES

"""Hold how much code a decision enters: a newcomer who follows it reads that many functions in that many files."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.model.job import Probe
from tests.builders import NOW, config, failed, job, pods, role, worker
from tests.counted import entered

MOST_CALLS = 124
MOST_FILES = 14
BUSY = Probe(busy_seen=True, busy_at=NOW - 1, asked_at=NOW - 1)
LOST = Probe(busy_seen=True, busy_at=NOW - 60, asked_at=NOW - 1, idle_at=NOW - 1, idle_since=NOW - 40)


VIEWS = {
    "at rest": job(3),
    "training": job(3, workers=tuple(worker(index, probe=BUSY) for index in range(3))),
    "growing": job(3, config=config(pods(0, 1)), role=role(0, 1)),
    "draining": job(2).shrunk(from_=3, ago=5),
    "drained": job(2).shrunk(from_=3, ago=65),
    "joining": job(3, config=config(pods(0, 1))),
    "shrinking": job(3, replicas=2),
    "disrupted": job(3, workers=(worker(0), worker(1), worker(2, disruption="taint", node="n"))),
    "rank lost": job(3, workers=(worker(0, probe=BUSY), worker(1, probe=BUSY), worker(2, probe=LOST))),
    "failed": job(3, workers=(worker(0), worker(1), failed(2))),
    "pod gone": job(3, workers=(worker(0), worker(1))),
    "pod replaced": job(3, workers=(worker(0), worker(1), worker(2, uid="new", created_at=NOW - 5))),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_decision_for_three_workers_stays_short(name: str) -> None:
    view = VIEWS[name]
    decide(view, now=NOW)  # the caches keep objects from look to look, and what was read of them
    files = entered(lambda: decide(replace(view), now=NOW))
    assert len(files) <= MOST_CALLS
    assert len(set(files)) <= MOST_FILES

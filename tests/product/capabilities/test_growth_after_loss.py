"""A job that fills and loses a worker, over time: the history that we write tells it to wait, its replacement does not."""

from typing import Any

import pytest

from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.autoscaling.size import Fill
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE
from mpijob_elastic.decide import decide
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, SizeChange
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, Story, but, config, job, pods, role, worker
from tests.rooms.autoscaling import grown
from tests.simulated_writes import apply

SIZE, MOST = 3, 6
# Seconds between two looks, and from the creation of a pod until it is Ready.
EVERY, STARTS = 5.0, 20.0


def training(**asked: Any) -> Story:
    """A job that fills, whose size somebody set long ago, and that has room for more workers."""
    memory = Memory(
        own=grown(SIZE, asked=SIZE),
        added_at=LONG_AGO,
        scale=SizeChange(before=0, after=SIZE, at=LONG_AGO),
    )
    return job(
        SIZE,
        policy=Policy(min_replicas=1, max_replicas=MOST, drain_timeout=0.0),
        scaling=Scaling(autoscale=Autoscale(fill=True), **asked),
        sized=Sized(by="kubectl", at=LONG_AGO),
        config=config(pods(*range(SIZE)), memory=memory),
        role=role(*range(MOST)),
        queue=NO_QUEUE,
        others_wait=(),
    )


@pytest.mark.parametrize(
    ("asked", "grows_after"),
    [({}, 300.0), ({"grow_after_loss": 600.0}, 600.0), ({"grow_after_loss": 0.0}, 60.0)],
)
def test_it_has_its_worker_back_at_once_and_grows_later(
    asked: dict[str, float], grows_after: float
) -> None:
    view: JobView = training(**asked).without(1)
    now, back_at, grown_at = NOW, 0.0, 0.0
    while not grown_at:
        assert now < NOW + 1000.0, "it never grows"
        for action in decide(view, now=now).actions:
            if isinstance(action, Fill):
                grown_at = now
            view = apply(view, action, now=now)
        now += EVERY
        if now == NOW + STARTS:  # the operator has made the pod again
            again = worker(1, uid="again", created_at=NOW, ready_at=now)
            view = but(view, workers=(view.workers[0], again, *view.workers[1:]))
        if not back_at and now > NOW + STARTS and len(view.host_of) == SIZE:
            back_at = now
    assert NOW < back_at < NOW + 60.0
    assert NOW + grows_after <= grown_at <= NOW + grows_after + 60.0

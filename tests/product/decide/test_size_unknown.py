"""A job whose MPIJob does not say how many workers it wants: nothing is written but the notice."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import TellUser
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import NO_QUEUE
from tests.builders import NOW, config, failed, job, pods, worker


@pytest.mark.parametrize(
    "view",
    [
        job(2),
        job(2, workers=(worker(0), failed(1))),
        job(2, config=config(pods(0, 1, 2))),
        job(1, workers=(worker(0),), config=config(pods(0, 1, 2))),
        job(2, suspended_by="annotation"),
        job(2, policy=Policy(scale_timeout=1.0, min_replicas=1), queue=NO_QUEUE),
    ],
    ids=["at rest", "failed", "surplus listed", "workers gone", "suspended", "timeout"],
)
def test_it_is_told_once_and_left_as_it_is(view: JobView) -> None:
    unsized = replace(view, size_known=False)
    [told] = decide(unsized, now=NOW).actions
    assert isinstance(told, TellUser)
    assert "SizeUnknown: j is left as it is: spec.mpiReplicaSpecs.Worker.replicas: is missing" in told.text
    assert decide(replace(unsized, notices=told.text), now=NOW).actions == ()


def test_what_has_ended_is_not_told() -> None:
    assert decide(job(2, finished=True, size_known=False), now=NOW).actions == ()

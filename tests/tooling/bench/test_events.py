"""The recorded pod event goes all the way through the controller's caches."""

from bench import events
from mpijob_elastic.observe import facts_pod


async def test_every_event_of_the_sample_is_taken_in() -> None:
    # It asserts itself that all pods were cached and all jobs queued.
    cost = await events.run(events.SAMPLE.read_bytes())
    assert min(cost.event, cost.decoding, cost.json) > 0


def test_the_sample_is_a_worker_that_runs() -> None:
    facts = facts_pod.read(events.SAMPLE.read_bytes())
    assert (facts.role, facts.phase, facts.metadata.job) == ("worker", "Running", "train")
    assert facts.ready_at

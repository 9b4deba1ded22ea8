"""The gauges of a job: what it asks for, what it has, and nothing once it has ended."""

from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.controller.per_job_state import ScaleTimes
from mpijob_elastic.decide import derive, plan
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, but, config, job, pending, pods, shown, worker

KEY = JobKey("default", "j")


def shows(*views: JobView) -> list[float | None]:
    """Return desired, ready, published, draining and queued workers after these looks."""
    registry = CollectorRegistry()
    times = ScaleTimes(Metrics(registry), clock=lambda: 0.0)
    for view in views:
        state = derive(view, now=NOW)
        times.watch(KEY, state, plan(state))
    kinds = (
        "desired_workers",
        "ready_workers",
        "published_hosts",
        "draining_workers",
        "queued_workers",
    )
    labels = {"namespace": "default", "job": "j"}
    return [registry.get_sample_value(f"mpijob_elastic_{name}", labels) for name in kinds]


def draining() -> JobView:
    gone = Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - 5)
    memory = Memory(left={"j-worker-2": gone}, removed_at=NOW - 5)
    return shown(job(3, replicas=2, config=config(pods(0, 1), memory=memory)), at=NOW - 5)


def test_the_workers_of_a_job() -> None:
    assert shows(job(3)) == [3, 3, 3, 0, 0]
    assert shows(job(3), but(job(3), replicas=5)) == [5, 3, 3, 0, 0]
    assert shows(job(2, workers=(worker(0), pending(1)), config=config(pods(0)))) == [2, 1, 1, 0, 0]
    waits = pending(1, gates=(names.GATE_QUEUED,))
    assert shows(job(2, workers=(worker(0), waits), config=config(pods(0)))) == [2, 1, 1, 0, 1]
    assert shows(job(3), draining()) == [2, 3, 2, 1, 0]


def test_a_job_that_is_not_elastic_or_has_ended_shows_nothing() -> None:
    assert shows(job(3, elastic=False)) == [None] * 5
    assert shows(job(3), but(job(3), finished=True)) == [None] * 5

"""Series that are there before anything happens."""

from prometheus_client import CollectorRegistry

from mpijob_elastic.telemetry.metrics import Metrics


def test_deletions_are_counted_from_zero() -> None:
    """Prometheus sees no increase in a series that begins with 1, so the first cut drain would raise no alert."""
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    assert registry.get_sample_value("mpijob_elastic_deleted_workers_total", {"outcome": "timeout"}) == 0
    before = {sample.labels["outcome"] for family in metrics.deleted_workers.collect() for sample in family.samples}
    for outcome in ("drained", "timeout", "idle", "unused", "unscheduled", "failed", "finished"):
        metrics.deleted_workers.labels(outcome).inc()
    after = {sample.labels["outcome"] for family in metrics.deleted_workers.collect() for sample in family.samples}
    assert after == before

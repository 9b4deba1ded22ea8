"""Series that are there before anything happens."""

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.telemetry.metrics import Metrics

PROBED = ("idle", "busy", "error")


@pytest.mark.parametrize(
    ("sample", "label", "values"),
    [
        ("scale_seconds_count", "phase", ("role", "published", "settled")),
        (
            "deleted_workers_total",
            "outcome",
            ("drained", "timeout", "idle", "unused", "unscheduled", "failed", "lost", "finished"),
        ),
        ("drain_probes_total", "outcome", (*PROBED, "told")),
        ("rank_probes_total", "outcome", PROBED),
        ("ended_execs_total", "outcome", ("ended", "gone", "error")),
        ("events_total", "outcome", ("sent", "failed", "dropped")),
    ],
)
def test_what_may_happen_is_counted_from_zero(sample: str, label: str, values: tuple[str, ...]) -> None:
    """Prometheus sees no increase in a series that begins with 1: no alert, and no change of size in a dashboard."""
    registry = CollectorRegistry()
    Metrics(registry)
    samples = [one for family in registry.collect() for one in family.samples]
    found = {one.labels[label]: one.value for one in samples if one.name == f"mpijob_elastic_{sample}"}
    assert found == dict.fromkeys(values, 0)

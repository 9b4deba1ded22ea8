"""Series that are there before anything happens."""

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    ("sample", "label", "values"),
    [
        ("scale_seconds_count", "phase", ("role", "published", "settled")),
        (
            "deleted_workers_total",
            "outcome",
            ("drained", "timeout", "idle", "unused", "unscheduled", "failed", "lost", "finished", "suspended"),
        ),
        ("ended_execs_total", "outcome", ("ended", "gone", "error")),
    ],
)
def test_what_may_happen_is_counted_from_zero(sample: str, label: str, values: tuple[str, ...]) -> None:
    """Prometheus sees no increase in a series that begins with 1: no alert, and no change of size in a dashboard."""
    registry = CollectorRegistry()
    Metrics(registry)
    samples = [one for family in registry.collect() for one in family.samples]
    found = {one.labels[label]: one.value for one in samples if one.name == f"mpijob_elastic_{sample}"}
    assert found == dict.fromkeys(values, 0)


def test_probes_are_counted_from_zero() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    samples = [one for family in registry.collect() for one in family.samples]
    probed = [one.labels for one in samples if one.name == "mpijob_elastic_probes_total"]
    assert probed == [
        *({"of": "draining", "outcome": outcome} for outcome in ("idle", "busy", "error", "told")),
        *({"of": "published", "outcome": outcome} for outcome in ("idle", "busy", "error")),
    ]

"""Series that are there before anything happens."""

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.telemetry.metrics import Metrics

PHASES = ("role", "published", "settled")
DELETED = (
    "drained",
    "timeout",
    "idle",
    "unused",
    "unscheduled",
    "failed",
    "lost",
    "finished",
    "suspended",
)
PROBED = {"draining": ("idle", "busy", "error", "told"), "published": ("idle", "busy", "error")}


@pytest.mark.parametrize(
    ("sample", "labels"),
    [
        ("scale_seconds_count", [{"phase": phase} for phase in PHASES]),
        ("deleted_workers_total", [{"outcome": outcome} for outcome in DELETED]),
        ("ended_execs_total", [{"outcome": outcome} for outcome in ("ended", "gone", "error")]),
        (
            "probes_total",
            [{"of": of, "outcome": outcome} for of, found in PROBED.items() for outcome in found],
        ),
    ],
)
def test_what_may_happen_is_counted_from_zero(sample: str, labels: list[dict[str, str]]) -> None:
    """Prometheus sees no increase in a series that begins with 1: no alert, and no change of size in a dashboard."""
    registry = CollectorRegistry()
    Metrics(registry)
    samples = [one for family in registry.collect() for one in family.samples]
    found = [(one.labels, one.value) for one in samples if one.name == f"mpijob_elastic_{sample}"]
    assert found == [(each, 0) for each in labels]

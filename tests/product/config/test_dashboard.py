"""The dashboard asks for what is served, under the labels that it has."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from mpijob_elastic.install import overlays
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.telemetry.metrics import Metrics
from webhook.admission import AdmissionMetrics as WebhookMetrics

METRIC = re.compile(r"\bmpijob_elastic_\w+")
# Prometheus renames a label that it gives to the pod as well.
OF_THE_POD = {"namespace", "pod", "container", "job"}
TEXT = (Path(__file__).parents[3] / "config/components/prometheus/dashboard.json").read_text()
DASHBOARD = json.loads(TEXT)
QUERIES = [
    pytest.param(
        query["expr"], query["legendFormat"], id=f"{panel['title']}: {query['legendFormat']}"
    )
    for panel in DASHBOARD["panels"]
    for query in panel.get("targets", ())
]


def served() -> dict[str, set[str]]:
    """Return the labels of each sample of ours as Prometheus stores them."""
    found = {}
    for metric in [*vars(Metrics(CollectorRegistry())).values(), *vars(WebhookMetrics()).values()]:
        if isinstance(metric, MetricWrapperBase):
            [family] = metric.describe()
            name = family.name + {"counter": "_total", "histogram": "_bucket"}.get(family.type, "")
            own = {
                f"exported_{label}" if label in OF_THE_POD else label
                for label in metric._labelnames
            }
            found[name] = own | OF_THE_POD | ({"le"} if family.type == "histogram" else set())
    return found


@pytest.mark.parametrize(("promql", "legend"), QUERIES)
def test_each_query_is_about_metrics_and_labels_that_there_are(promql: str, legend: str) -> None:
    metrics = set(METRIC.findall(promql))
    assert metrics
    assert metrics <= served().keys()
    groups = re.findall(r"\bby \(([\w, ]+)\)", promql)
    matchers = re.findall(r"(\w+)=~?\"", promql)
    labels = {label for group in groups for label in group.split(", ")} | {*matchers}
    assert all(labels <= served()[metric] for metric in metrics)
    assert {*re.findall(r"{{(\w+)}}", legend)} <= {*labels}


def test_what_is_shipped_is_up_to_date() -> None:
    [found] = [one for one in overlays.rendered(Overlay.PROMETHEUS) if one["kind"] == "ConfigMap"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {"mpijob-elastic.json": TEXT}, "run `make manifests`"

"""The dashboard's queries, asked of a real Prometheus that watches a real resize: no panel is empty."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.replicas import Controller, Webhook
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.waiting import until
from tests.peers.prometheus import Prometheus

DASHBOARD = json.loads(
    (Path(__file__).parents[2] / "config/components/prometheus/dashboard.json").read_text()
)
Query = dict[str, Any]

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("operator"),
]


@pytest.fixture
def watching(
    prometheus: Path, tmp_path: Path, elastic: Controller, webhook: Webhook
) -> Iterator[Prometheus]:
    """Prometheus, which has scraped both."""
    with Prometheus.start(prometheus, tmp_path) as running:
        running.scrape({"controller-a": elastic.health, "webhook-a": webhook.health})
        until(lambda: len(running.query("up == 1")) == 2)
        yield running


async def test_no_panel_is_empty_after_resizes(
    watching: Prometheus, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    await job.settled(2)
    for replicas in (3, 1, 3):
        await job.scale(replicas)
        await job.settled(replicas)
    workers, *_ = panels = [panel for panel in DASHBOARD["panels"] if "targets" in panel]
    until(
        lambda: [value(watching, query, namespace) for query in workers["targets"]] == [3, 3, 3, 0]
    )
    until(
        lambda: (
            watching.query('mpijob_elastic_scale_seconds_count{phase="settled"}')[0]["value"][1]
            == "3"
        )
    )
    queries = {
        f"{panel['title']}: {query['legendFormat']}": query
        for panel in panels
        for query in panel["targets"]
    }
    assert [name for name, query in queries.items() if not shown(watching, query, namespace)] == []


def value(prometheus: Prometheus, query: Query, namespace: str) -> float | None:
    """Return the value of a query that has one series."""
    found = prometheus.query(as_chosen(query, namespace))
    return float(found[0]["value"][1]) if found else None


def shown(prometheus: Prometheus, query: Query, namespace: str) -> bool:
    """Tell whether each line of a query has a number, and what its legend names."""
    lines = prometheus.query(as_chosen(query, namespace))
    labels = re.findall(r"{{(\w+)}}", query["legendFormat"])
    return bool(lines) and all(
        math.isfinite(float(line["value"][1]))
        and all(line["metric"].get(label) for label in labels)
        for line in lines
    )


def as_chosen(query: Query, namespace: str) -> str:
    """Return what Grafana asks where the user has chosen the namespace and all its jobs."""
    choices = {"$namespace": namespace, "$job": ".*", "$__rate_interval": "2m"}
    return re.sub(r"\$\w+", lambda found: choices[found[0]], query["expr"])

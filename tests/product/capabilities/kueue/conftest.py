"""What writes for Kueue."""

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.capabilities.kueue.live import Workloads
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW
from tests.product.act.writes import Taken, Told, leader_writer_of


@pytest.fixture
def written(client: ApiWriter, taken: Taken, told: Told) -> Workloads:
    metrics = Metrics(CollectorRegistry())
    return Workloads(
        client=client,
        leader_writer=leader_writer_of(client, metrics),
        seen=taken,
        events=told,
        now=lambda: NOW,
    )

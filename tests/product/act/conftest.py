"""What writes need beside a client."""

import math

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.gate import Gate
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.product.act.told import Told


@pytest.fixture
def told(client: ApiWriter) -> Told:
    metrics = Metrics(CollectorRegistry())
    return Told(Gate(client, time_left=lambda: math.inf, metrics=metrics), metrics)

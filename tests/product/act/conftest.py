"""What writes need beside a client."""

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.writer import Writer
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.product.act.writes import Nothing, Taken, Told, gate_of, writer_of


@pytest.fixture
def told(client: ApiWriter) -> Told:
    metrics = Metrics(CollectorRegistry())
    return Told(gate_of(client, metrics))


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def writer(client: ApiWriter, taken: Taken) -> Writer:
    """A writer that finds nothing live of what was decided."""
    return writer_of(client, taken, Nothing())

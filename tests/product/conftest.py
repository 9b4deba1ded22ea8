"""A tiny API server behind a proxy that breaks things, a client that goes through both, what writes need, commands."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.writer import Writer
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.doubles.api import TinyApi
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import Nothing, Taken, Told, leader_writer_of, writer_of
from tests.product.cli.cluster import Commands


@pytest.fixture(autouse=True)
def own_log_level() -> Iterator[None]:
    """Commands, and searches, make our log quieter: for their test alone."""
    logger = logging.getLogger("mpijob_elastic")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with TinyApi() as api:
        yield api


@pytest.fixture
async def proxy(api: TinyApi) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(api.kubeconfig) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: FaultProxy) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="test", kubeconfig=proxy.kubeconfig) as client:
        yield client


@pytest.fixture
def told(client: ApiWriter) -> Told:
    metrics = Metrics(CollectorRegistry())
    return Told(leader_writer_of(client, metrics))


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def writer(client: ApiWriter, taken: Taken) -> Writer:
    """A writer that finds nothing live of what was decided."""
    return writer_of(client, taken, Nothing())


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Commands in a cluster that answers what the test says."""
    return Commands(tmp_path, capsys)

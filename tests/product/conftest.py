"""A tiny API server, a proxy that breaks things in front of it, and a client that goes through both."""

from collections.abc import AsyncIterator

import pytest

from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.proxy import FaultProxy


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

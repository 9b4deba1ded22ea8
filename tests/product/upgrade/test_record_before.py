"""Where no record can be kept for long, nothing is changed."""

from __future__ import annotations

import pytest

from mpijob_elastic import names
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.tiny_api import TinyApi
from upgrade import record_before, store
from upgrade.refusal import Refused


@pytest.fixture
def applier(client: ApiWriter) -> Applier:
    return Applier(client=client, server=Server(version="v1.34.4", minor=34, served={}))


async def test_a_namespace_that_ends_would_take_the_record_with_it(
    api: TinyApi, client: ApiWriter, applier: Applier
) -> None:
    await api.create(NAMESPACES.path(), names.NAMESPACE)
    await api.update(NAMESPACES.path(), names.NAMESPACE, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    before = dict(api.objects)
    with pytest.raises(Refused, match="still ending"):
        await record_before.keep(client, applier, [], {})
    assert api.objects == before


async def test_a_namespace_that_somebody_else_makes_at_that_moment_will_do(
    proxy: FaultProxy, client: ApiWriter
) -> None:
    def creations(request: Request) -> bool:
        return request.method == "POST"

    with proxy.inject(Answer(status=409, reason="AlreadyExists"), on=creations):
        await store.ensure_namespace(client)
    assert proxy.count(creations) == 1

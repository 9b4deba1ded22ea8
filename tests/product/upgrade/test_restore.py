"""Objects put back while their own controllers write to them, too."""

from typing import Any

import pytest

from mpijob_elastic.install.changes import Outcome
from mpijob_elastic.install.refusal import ATTEMPTS, Refused
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Meanwhile, Request
from tests.faults.proxy import FaultProxy
from upgrade.restore import restore

DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
SERVED = {(DEPLOYMENTS.api_version, DEPLOYMENTS.kind): DEPLOYMENTS}
COLLECTION = DEPLOYMENTS.path("n")
OLD, NEW = {"image": "old"}, {"image": "new"}


@pytest.fixture
def applier(client: ApiWriter) -> Applier:
    return Applier(client=client, server=Server(version="v1.34.4", minor=34, served=SERVED))


async def deployed(api: TinyApi) -> dict[str, Any]:
    """A Deployment as it was before it was changed."""
    typed = {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind}
    before = await api.create(COLLECTION, "webhook", **typed, spec=OLD)
    await api.update(COLLECTION, "webhook", spec=NEW)
    return before


def puts(request: Request) -> bool:
    return request.method == "PUT"


async def test_a_status_written_between_does_no_harm(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)

    async def write_status() -> None:
        await api.update(COLLECTION, "webhook", status={"replicas": 1})

    with proxy.inject(Meanwhile(callback=write_status), on=puts, times=1):
        change = await restore(applier, before)
    assert change.outcome is Outcome.CONFIGURED
    assert api.objects[f"{COLLECTION}/webhook"]["spec"] == OLD
    assert proxy.count(puts) == 2


async def test_who_makes_it_anew_between_keeps_it(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)

    async def make_anew() -> None:
        await api.delete(COLLECTION, "webhook")
        await api.create(COLLECTION, "webhook", spec=NEW)

    with proxy.inject(Meanwhile(callback=make_anew), on=puts, times=1):
        change = await restore(applier, before)
    assert change.outcome is Outcome.SKIPPED
    assert api.objects[f"{COLLECTION}/webhook"]["spec"] == NEW


async def test_whoever_writes_all_the_time_is_complained_of(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)

    async def write_status() -> None:
        await api.update(COLLECTION, "webhook", status={"at": api.revision})

    with (
        proxy.inject(Meanwhile(callback=write_status), on=puts),
        pytest.raises(Refused, match="somebody else 5 times"),
    ):
        await restore(applier, before)
    assert proxy.count(puts) == ATTEMPTS

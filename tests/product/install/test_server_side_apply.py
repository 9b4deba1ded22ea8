"""Objects applied and removed while somebody else does the same."""

import pytest

from mpijob_elastic.install import removal
from mpijob_elastic.install.changes import Outcome
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy

MANIFEST = {
    "apiVersion": CONFIG_MAPS.api_version,
    "kind": CONFIG_MAPS.kind,
    "metadata": {"name": "a", "namespace": "n"},
    "data": {"key": "value"},
}
SERVER = Server(version="v1.34.4", minor=34, served={(CONFIG_MAPS.api_version, CONFIG_MAPS.kind): CONFIG_MAPS})


def patches(request: Request) -> bool:
    return request.method == "PATCH"


def deletions(request: Request) -> bool:
    return request.method == "DELETE"


async def test_what_somebody_else_creates_at_that_moment_is_applied_to(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await api.create(CONFIG_MAPS.path("n"), "a", apiVersion="v1", kind="ConfigMap")
    with proxy.inject(Answer(status=409, reason="AlreadyExists"), on=patches, times=1):
        change = await Applier(client=client, server=SERVER).apply(MANIFEST)
    assert change.outcome is Outcome.CONFIGURED
    assert api.objects[CONFIG_MAPS.path("n", "a")]["data"] == {"key": "value"}


async def test_fields_of_others_are_a_conflict(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    await api.create(CONFIG_MAPS.path("n"), "a", apiVersion="v1", kind="ConfigMap")
    with (
        proxy.inject(Answer(status=409, reason="Conflict"), on=patches),
        pytest.raises(Refused, match="--force-conflicts"),
    ):
        await Applier(client=client, server=SERVER).apply(MANIFEST)


@pytest.mark.parametrize(("status", "reason"), [(404, "NotFound"), (409, "Conflict")])
async def test_what_is_gone_or_another_by_now_is_not_deleted(
    proxy: FaultProxy, client: ApiWriter, status: int, reason: str
) -> None:
    said: list[object] = []
    found = Found(identity=identity(MANIFEST), uid="of another one")
    with proxy.inject(Answer(status=status, reason=reason), on=deletions):
        await removal.delete(client, SERVER, [found], said.append)
    assert said == []

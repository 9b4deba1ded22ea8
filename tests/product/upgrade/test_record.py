import base64
import random

import pytest

from mpijob_elastic import names
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from upgrade import namespaces, record
from upgrade.record import Record

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ours"}}
RECORD = Record(
    taken_at="2026-01-01T00:00:00+00:00", version="0.1.0", crd={"spec": {"x": [1, True, None]}}, objects=(NAMESPACE,)
)


def test_there_and_back() -> None:
    assert record.unpack(record.pack(RECORD)) == RECORD


def test_the_same_record_gives_the_same_data() -> None:
    assert record.pack(RECORD) == record.pack(RECORD)


def test_objects_are_found_by_what_they_are() -> None:
    assert RECORD.find(Identity(api_version="v1", kind="Namespace", namespace="", name="ours")) == NAMESPACE
    assert RECORD.find(Identity(api_version="v1", kind="Namespace", namespace="", name="other")) is None


@pytest.mark.parametrize("key", [record.KEY, record.CHECKSUM])
@pytest.mark.parametrize("value", [None, "", "!", base64.b64encode(b"something else").decode()])
def test_damage_is_noticed(key: str, value: str | None) -> None:
    data = record.pack(RECORD)
    data = {name: text for name, text in data.items() if name != key} | ({key: value} if value is not None else {})
    with pytest.raises(Refused, match="changed or damaged"):
        record.unpack(data)


def test_another_records_content_is_noticed() -> None:
    other = record.pack(Record(taken_at="", version="", crd={}))
    with pytest.raises(Refused, match="changed or damaged"):
        record.unpack(record.pack(RECORD) | {record.KEY: other[record.KEY]})


def test_what_no_secret_holds_is_refused() -> None:
    noise = random.Random(0).randbytes(2**21).hex()
    with pytest.raises(Refused, match="a Secret holds"):
        record.pack(Record(taken_at="", version="", crd={"noise": noise}))


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
        await record.keep(client, applier, [], {})
    assert api.objects == before


async def test_a_namespace_that_somebody_else_makes_at_that_moment_will_do(
    proxy: FaultProxy, client: ApiWriter
) -> None:
    def creations(request: Request) -> bool:
        return request.method == "POST"

    with proxy.inject(Answer(status=409, reason="AlreadyExists"), on=creations):
        await namespaces.ensure(client, names.NAMESPACE, namespaces.FOR_RECORD, labels=record.LABELS)
    assert proxy.count(creations) == 1

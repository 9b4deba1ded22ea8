"""The definition as it was before is recorded once, and read again; so is what version 0.2.0 recorded."""

import base64
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer
from tests.faults.proxy import FaultProxy
from tests.product.upgrade.definitions import definition, recorded_by_upgrade_apply
from upgrade import crd, record, scale

HOME = SECRETS.path(names.NAMESPACE)
BEFORE = {"spec": {"x": [1, True, None]}}


async def test_what_was_recorded_first_stays(api: TinyApi, client: ApiWriter) -> None:
    assert await record.read(client) is None
    await record.keep(client, BEFORE)
    await record.keep(client, {"spec": {}})
    assert await record.read(client) == BEFORE
    assert api.objects[f"{HOME}/{record.NAME}"]["immutable"]
    await record.delete(client)
    assert await record.read(client) is None


async def test_somebody_who_is_faster_records_it(client: ApiWriter, proxy: FaultProxy) -> None:
    with proxy.inject(
        Answer(status=409, reason="AlreadyExists"), on=lambda request: request.method == "POST"
    ):
        await record.keep(client, BEFORE)


@pytest.mark.parametrize("value", [None, "", "!", base64.b64encode(b"no gzip").decode(), "cut"])
def test_damage_is_noticed(value: str | None) -> None:
    value = record.pack(BEFORE)[record.KEY][:-8] if value == "cut" else value
    data = {} if value is None else {record.KEY: value}
    with pytest.raises(Refused, match="Secret mpijob-elastic/n, is damaged"):
        record.unpack("n", data)


@pytest.fixture
async def defined(api: TinyApi) -> dict[str, Any]:
    """The definition of an administrator, made scalable."""
    before = definition("administrator")
    after = {key: part for key, part in crd.upgraded(before).items() if key != "metadata"}
    await api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), crd.NAME, **after)
    return before


async def test_the_record_of_upgrade_apply_puts_the_definition_back(
    api: TinyApi, client: ApiWriter, defined: dict[str, Any]
) -> None:
    [_, former] = record.NAMES
    await api.create(HOME, former, data=recorded_by_upgrade_apply(defined))
    await record.keep(client, {"spec": {}})
    await scale.take_back(client, dry_run=False, say=lambda _: None)
    assert api.objects[scale.DEFINITION]["spec"] == defined["spec"]
    assert await record.read(client) is None


async def test_where_both_are_the_definition_before_install_counts(
    api: TinyApi, client: ApiWriter
) -> None:
    [_, former] = record.NAMES
    await record.keep(client, BEFORE)
    await api.create(HOME, former, data=recorded_by_upgrade_apply({"spec": {}}))
    assert await record.read(client) == BEFORE

"""Troubles of the webhook, as far as this user may see; a definition keeps and uses a selector, or does not."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from mpijob_elastic.observe import registration
from tests.product.cli.cluster import Answers, forbidden, reaching, status


def hooks(**config: Any) -> web.Response:
    return web.json_response({"webhooks": [{"clientConfig": config}]})


SERVICE = {"namespace": "mpijob-elastic", "name": "w"}
HOOKED = hooks(caBundle="x", service=SERVICE)


def slices(*ready: bool | None) -> list[dict[str, Any]]:
    ends = [{"conditions": {} if is_ready is None else {"ready": is_ready}} for is_ready in ready]
    return [{"metadata": {"name": "w-1"}, "endpoints": ends}]


@pytest.mark.parametrize(
    ("served", "words"),
    [
        ({"mpijob-elastic": hooks(caBundle="x", url="https://somewhere")}, ""),
        ({"mpijob-elastic": HOOKED, "endpointslices": slices(False, True)}, ""),
        ({"mpijob-elastic": HOOKED, "endpointslices": slices(None)}, ""),
        ({"mpijob-elastic": HOOKED, "endpointslices": slices(False)}, "no replica"),
        ({"mpijob-elastic": HOOKED, "endpointslices": []}, "no replica"),
        ({"mpijob-elastic": HOOKED, "endpointslices": forbidden("endpointslices")}, ""),
        ({"mpijob-elastic": hooks(service=SERVICE)}, "caBundle is empty"),
        ({"mpijob-elastic": status(404, "NotFound")}, "does not call the webhook"),
        ({"mpijob-elastic": forbidden("mutatingwebhookconfigurations")}, ""),
    ],
)
async def test_whether_the_webhook_can_be_asked(
    tmp_path: Path, served: Answers, words: str
) -> None:
    async with reaching(tmp_path, served) as (client, _):
        said = await registration.trouble(client, await registration.read(client))
    assert words in said
    assert bool(said) is bool(words)


@pytest.mark.parametrize(
    ("configuration", "namespace"),
    [
        (hooks(caBundle="x", service={**SERVICE, "namespace": "elsewhere"}), "elsewhere"),
        (hooks(caBundle="x", url="https://somewhere"), "mpijob-elastic"),
        (web.json_response({}), "mpijob-elastic"),
        (forbidden("mutatingwebhookconfigurations"), "mpijob-elastic"),
        (status(404, "NotFound"), "mpijob-elastic"),
    ],
)
async def test_where_it_is_installed(
    tmp_path: Path, configuration: web.Response, namespace: str
) -> None:
    async with reaching(tmp_path, {"mpijob-elastic": configuration}) as (client, _):
        assert registration.home(await registration.read(client)) == namespace


PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
PATH = ".status.replicaStatuses.Worker.selector"
STRING = {"type": "string"}


def nested(leaf: dict[str, Any], *names: str) -> dict[str, Any]:
    """A structural schema that names these fields, the last with the schema `leaf`."""
    for name in reversed(names):
        leaf = {"type": "object", "properties": {name: leaf}}
    return leaf


def keeps(schema: dict[str, Any] | None, *, selector: str | None = PATH, **spec: Any) -> bool:
    subresources: dict[str, Any] = {"status": {}}
    if selector is not None:
        subresources["scale"] = {
            "specReplicasPath": ".x",
            "statusReplicasPath": ".y",
            "labelSelectorPath": selector,
        }
    version = {
        "name": "v1",
        "subresources": subresources,
        "schema": {"openAPIV3Schema": schema or {}},
    }
    older = {"name": "v1alpha2"}
    return registration.keeps_selector(
        msgspec.json.encode({"spec": {"versions": [older, version], **spec}})
    )


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (PRESERVE, True),
        (nested(PRESERVE, "status"), True),
        (nested(STRING, "status", "replicaStatuses", "Worker", "selector"), True),
        (
            nested(
                {"additionalProperties": {"properties": {"selector": STRING}}},
                "status",
                "replicaStatuses",
            ),
            True,
        ),
        (nested({"additionalProperties": True}, "status", "replicaStatuses"), True),
        (
            nested(
                {"additionalProperties": {"properties": {"active": {}}}},
                "status",
                "replicaStatuses",
            ),
            False,
        ),
        (nested({"type": "object"}, "status"), False),
        (nested(STRING, "status", "replicaStatuses", "Worker", "active"), False),
        (nested({"type": "object", **PRESERVE}, "spec"), False),
        (None, False),
    ],
)
def test_a_schema_keeps_or_prunes_it(schema: dict[str, Any] | None, kept: bool) -> None:
    assert keeps(schema) is kept


def test_a_scale_that_reads_it_is_needed_and_what_is_missing_means_no() -> None:
    assert keeps(None, preserveUnknownFields=True), "the legacy form keeps everything"
    for selector in (None, ".status.selector"):
        assert not keeps(PRESERVE, selector=selector)
        assert not keeps(None, selector=selector, preserveUnknownFields=True)
    for spec in ({}, {"versions": [{"name": "v1alpha2"}]}, {"versions": [{"name": "v1"}]}):
        assert (
            registration.keeps_selector(msgspec.json.encode({"spec": spec} if spec else {}))
            is False
        )

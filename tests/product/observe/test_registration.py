"""Troubles of the webhook, as far as this user may see."""

from pathlib import Path
from typing import Any

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
async def test_whether_the_webhook_can_be_asked(tmp_path: Path, served: Answers, words: str) -> None:
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
async def test_where_it_is_installed(tmp_path: Path, configuration: web.Response, namespace: str) -> None:
    async with reaching(tmp_path, {"mpijob-elastic": configuration}) as (client, _):
        assert registration.home(await registration.read(client)) == namespace

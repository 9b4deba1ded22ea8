"""Whether our webhook answers, told from the refusals of other webhooks and from calls that failed."""

from pathlib import Path

import pytest
from aiohttp import web

from mpijob_elastic.install import webhook_call
from mpijob_elastic.kube import errors
from tests.product.cli.cluster import reaching, status

STORED = web.json_response({})


def denied(webhook: str) -> web.Response:
    return status(400, "BadRequest", f'admission webhook "{webhook}" denied the request: no')


@pytest.mark.parametrize(
    ("answer", "answers", "asked"),
    [
        (denied("mpijobs.webhook.mpijob-elastic"), True, 1),
        (denied("new-jobs.webhook.mpijob-elastic"), True, 1),
        (STORED, False, 2),
    ],
)
async def test_our_webhook_answers_by_a_refusal_and_is_asked_twice(
    tmp_path: Path, answer: web.Response, answers: bool, asked: int
) -> None:
    async with reaching(tmp_path, {"POST mpijobs": answer}) as (client, requests):
        assert await webhook_call.is_answered(client, "ml") is answers
    assert len(requests) == asked


@pytest.mark.parametrize(
    "answer",
    [
        denied("validate.kyverno.svc-fail"),
        status(400, "BadRequest", 'admission webhook "w.example" does not support dry run'),
        status(
            500,
            "InternalError",
            'failed calling webhook "mpijobs.webhook.mpijob-elastic": failed to call webhook: Post',
        ),
        status(403, "Forbidden", "mpijobs is forbidden"),
    ],
)
async def test_what_others_refuse_says_nothing_about_our_webhook(
    tmp_path: Path, answer: web.Response
) -> None:
    async with reaching(tmp_path, {"POST mpijobs": answer}) as (client, _):
        with pytest.raises(errors.ApiError):
            await webhook_call.is_answered(client, "ml")

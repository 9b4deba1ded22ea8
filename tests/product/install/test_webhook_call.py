"""Whether our webhook answers, told from the refusals of other webhooks and from calls that failed."""

import re
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from mpijob_elastic import capabilities
from mpijob_elastic.admission import template_fields
from mpijob_elastic.install import webhook_call
from mpijob_elastic.install.webhook_call import CalledWebhook
from mpijob_elastic.kube import errors
from mpijob_elastic.model import mpijob
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


MARKED = web.json_response({"metadata": {"annotations": {"mpijob-elastic/put-back": "true"}}})


@pytest.mark.parametrize(
    ("answer", "changes", "asked"),
    [
        (MARKED, True, 1),
        (STORED, False, 2),
        (web.json_response({"metadata": {"annotations": {"x": "y"}}}), False, 2),
        (denied("mpijobs.webhook.mpijob-elastic"), None, 1),
        (status(403, "Forbidden", "exceeded quota: mpijobs"), None, 1),
    ],
)
async def test_a_webhook_that_changes_new_jobs_leaves_its_mark(
    tmp_path: Path, answer: web.Response, changes: bool | None, asked: int
) -> None:
    async with reaching(tmp_path, {"POST mpijobs": answer}) as (client, requests):
        assert await webhook_call.changes_new(client, "ml") is changes
    assert len(requests) == asked


@pytest.mark.parametrize(
    ("checks", "changes", "answers", "words"),
    [
        (True, True, True, ""),
        (True, None, True, ""),
        (True, False, True, ""),
        (False, True, True, "no ValidatingWebhookConfiguration .* are not refused"),
        (False, False, False, ""),
        (False, None, False, ""),
    ],
)
def test_half_a_registration_lacks_something(
    checks: bool, changes: bool | None, answers: bool, words: str
) -> None:
    called = CalledWebhook(checks=checks, changes=changes)
    assert called.answers is answers
    assert re.search(words, called.lacks("ml"))
    assert bool(called.lacks("ml")) is bool(words)
    assert bool(called.doubt("ml")) is (checks and changes is False)


@pytest.mark.parametrize(
    ("registered", "lacks", "asked"),
    [(True, False, 1), (False, True, 1), (None, False, 2)],
)
async def test_a_webhook_that_checks_is_asked_once_where_its_registration_is_known(
    tmp_path: Path, registered: bool | None, lacks: bool, asked: int
) -> None:
    answer = denied("mpijobs.webhook.mpijob-elastic")
    async with reaching(tmp_path, {"POST mpijobs": answer}) as (client, requests):
        called = await webhook_call.called(client, "ml", registered=registered)
    assert (called.checks, bool(called.lacks("ml"))) == (True, lacks)
    assert len(requests) == asked


def test_the_job_of_the_question_has_a_field_that_comes_back() -> None:
    """Without such a field the webhook leaves no mark."""
    job = mpijob.decode(msgspec.json.encode(webhook_call._marked_job()))
    assert template_fields.marks(job, capabilities.of(job))


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

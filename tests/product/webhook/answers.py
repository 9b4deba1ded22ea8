"""What the rules answer: the object that the API server stores after a patch, and the verdict on a request."""

import json
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec

from lab.operator.objects import Object
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job_facts import JobFacts
from tests.product.webhook.objects import body
from webhook.rules import handlers, mutate, review
from webhook.rules.handlers import NOTHING, Answer, ReviewContext
from webhook.rules.json_patch import Patch
from webhook.rules.review import Verdict

PodRule = Callable[[mutate.Pod, JobFacts | None], Patch]


def facts(job: Object) -> JobFacts:
    return job_facts.read(json.dumps(job).encode())


def patch_of(rule: PodRule, pod: Object, job: Object | None) -> Patch:
    return rule(msgspec.convert(pod, mutate.Pod), facts(job) if job else None)


def patched(rule: PodRule, pod: Object, job: Object | None) -> Object:
    """The pod after the rule's patch; a webhook that is called again leaves it as it is."""
    stored: Object = jsonpatch.apply_patch(pod, patch_of(rule, pod, job))
    assert jsonpatch.apply_patch(stored, patch_of(rule, stored, job)) == stored
    return stored


def answer(
    obj: Object | None, old: Object | None = None, *, context: ReviewContext = NOTHING, **request: Any
) -> Answer:
    """The answer of /validate."""
    return handlers.answer(review.parse(body(obj, old=old, **request)), handlers.validating(context))


def verdict(
    obj: Object | None, old: Object | None = None, *, context: ReviewContext = NOTHING, **request: Any
) -> Verdict:
    return answer(obj, old, context=context, **request).verdict

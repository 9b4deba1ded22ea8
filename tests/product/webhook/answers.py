"""What the rules answer: the object that the API server stores after a patch, and the verdict on a request."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import jsonpatch
import msgspec

from lab.operator.objects import Object
from mpijob_elastic import capabilities
from mpijob_elastic.admission import mutate, review
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup, ReviewContext
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.review import Answer, Verdict
from mpijob_elastic.admission.size import QuotaFacts
from mpijob_elastic.capabilities import admission
from mpijob_elastic.model.job_facts import JobFacts
from tests.product.webhook.objects import body, mpi_job
from webhook.rules import handlers

# What a webhook answers that has seen nothing of the cluster.
NOTHING = ReviewContext(
    job=lambda _namespace, _name: None, now=lambda: 0.0, rooms=admission.ALL, taken=admission.TAKEN
)
# The time of every context here.
NOW = 1_700_000_000.0
PodRule = Callable[[mutate.AdmittedPod, JobFacts | None], Patch]


def facts(job: Object) -> JobFacts:
    return capabilities.read(json.dumps(job).encode())


def patch_of(rule: PodRule, pod: Object, job: Object | None) -> Patch:
    return rule(msgspec.convert(pod, mutate.AdmittedPod), facts(job) if job else None)


def own(room: CapabilityAdmission, lookup: Lookup | None = None) -> PodRule:
    """The rule by which a capability patches a pod; nothing while its job is not known."""
    return lambda pod, job: room.patched(pod, job, lookup or Lookup()) if job else ()


def patched(rule: PodRule, pod: Object, job: Object | None) -> Object:
    """The pod after the rule's patch; a webhook that is called again leaves it as it is."""
    stored: Object = jsonpatch.apply_patch(pod, patch_of(rule, pod, job))
    assert jsonpatch.apply_patch(stored, patch_of(rule, stored, job)) == stored
    return stored


def knowing(job: Object | None = None, *, quotas: Sequence[QuotaFacts] = ()) -> ReviewContext:
    """The context of a webhook that has seen this job `train` and the ResourceQuotas of its namespace."""
    found = facts(job) if job else None
    return ReviewContext(
        job=lambda _namespace, name: found if name == "train" else None,
        quotas=lambda _namespace: quotas,
        now=lambda: NOW,
        rooms=admission.ALL,
        taken=admission.TAKEN,
    )


def running(**facts: Any) -> Object:
    """An elastic job of 3 workers that the operator has reported."""
    job = mpi_job(**{"replicas": 3, "conditions": ["Created", "Running"], **facts})
    return {**job, "metadata": {**job["metadata"], "resourceVersion": "1"}}


def answer(
    obj: Object | None,
    old: Object | None = None,
    *,
    context: ReviewContext = NOTHING,
    **request: Any,
) -> Answer:
    """The answer of /validate."""
    return handlers.answer(
        review.parse(body(obj, old=old, **request)), handlers.validating(context)
    )


def verdict(
    obj: Object | None,
    old: Object | None = None,
    *,
    context: ReviewContext = NOTHING,
    **request: Any,
) -> Verdict:
    return answer(obj, old, context=context, **request).verdict

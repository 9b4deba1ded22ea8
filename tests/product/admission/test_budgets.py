"""The webhook warns of a PodDisruptionBudget that will allow no eviction, where workers only hold their place."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest

from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.interface import Lookup
from mpijob_elastic.admission.review import Verdict
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import BUDGETS, Resource
from mpijob_elastic.model import budgets
from mpijob_elastic.names import PARKED
from tests.product.webhook.answers import knowing, running, verdict
from tests.product.webhook.objects import PLAIN

QUEUE = {"kueue.x-k8s.io/queue-name": "team"}


@dataclass
class Seen(Lookup):
    """A webhook that has seen a budget, or cannot read budgets."""

    spec: Object | None

    def within(self, resource: Resource, _namespace: str) -> Iterable[KubeObject]:
        if resource != BUDGETS:
            return []
        if self.spec is None:
            raise LookupError
        selector = {"matchLabels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER}}
        made = {
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"selector": selector, **self.spec},
        }
        return [budgets.read(json.dumps(made).encode())]


ONE = Seen({"maxUnavailable": 1})


def parked(which: str | None, **job: object) -> Object:
    return running(**{"replicas": 4, "annotations": {PARKED: which} if which else {}, **job})


def queued(least: int, replicas: int = 4) -> Object:
    job = running(annotations={names.MIN_REPLICAS: str(least)}, replicas=replicas)
    job["metadata"].setdefault("labels", {}).update(QUEUE)
    return job


def told(
    after: Object | None, before: Object | None = None, *, seen: Seen = ONE, **request: object
) -> list[str]:
    context = replace(knowing(parked("1")), lookup=seen)
    found: Verdict = verdict(after, before, context=context, **request)
    assert found.allowed, found.refusals
    return [text for text in found.warnings if "PodDisruptionBudget" in text]


@pytest.mark.parametrize("before", [None, parked(None)])
def test_parking_beside_such_a_budget_is_allowed_with_a_warning(before: Object | None) -> None:
    [warning] = told(parked("1"), before)
    assert warning == (
        "PodDisruptionBudget team (maxUnavailable 1) allows no eviction while workers are parked: it counts them "
        "as unavailable; set minAvailable to a number of at most 2"
    )
    assert len(warning) <= review.LONGEST_WARNING


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(Seen({"minAvailable": 2}), id="a number"),
        pytest.param(Seen({"maxUnavailable": 2}), id="one more may be unavailable"),
        pytest.param(Seen(None), id="nobody can say"),
    ],
)
def test_others_get_none(seen: Seen) -> None:
    assert told(parked("1"), parked(None), seen=seen) == []


@pytest.mark.parametrize(
    ("after", "before"),
    [
        pytest.param(parked(None), parked("1"), id="it comes back"),
        pytest.param(
            parked("1", annotations={PARKED: "1", "mpijob-elastic/drain-timeout": "9s"}),
            parked("1"),
            id="an edit of something else",
        ),
        pytest.param(parked("1", command=PLAIN), parked(None, command=PLAIN), id="not elastic"),
        pytest.param(parked("9"), parked(None), id="beyond the size"),
    ],
)
def test_an_edit_after_which_no_more_wait_gets_none(after: Object, before: Object) -> None:
    assert told(after, before) == []


def test_a_scale_gets_the_warning_too() -> None:
    def scale(size: int) -> Object:
        metadata = {"name": "train", "namespace": "default", "uid": parked("1")["metadata"]["uid"]}
        kind = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
        return {**kind, "metadata": metadata, "spec": {"replicas": size}}

    assert len(told(scale(5), scale(4), subResource="scale")) == 1


def test_extras_that_may_wait_for_quota_count_as_well() -> None:
    [warning] = told(queued(2))
    assert "while workers wait for quota" in warning
    assert warning.endswith("at most 1")
    assert told(queued(4)) == []

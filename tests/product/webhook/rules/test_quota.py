"""Warnings of a size that a ResourceQuota of the namespace cannot take."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.product.webhook.answers import knowing, verdict
from tests.product.webhook.objects import Object, mpi_job
from webhook.rules import quota, review
from webhook.rules.handlers import NOTHING
from webhook.rules.quota import QuotaFacts

GPUS = "requests.nvidia.com/gpu"


def limit(used: dict[str, str], hard: dict[str, str], **spec: Any) -> QuotaFacts:
    made = {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": hard, **spec}}
    return quota.read(json.dumps({**made, "status": {"hard": hard, "used": used}}).encode())


def job(replicas: int, *resources: Object) -> Object:
    """A job whose workers have these containers."""
    made = mpi_job(replicas=replicas, conditions=["Created"])
    containers = [{"name": f"c{number}", "resources": found} for number, found in enumerate(resources)]
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers
    return made


def created(after: Object, found: QuotaFacts) -> tuple[str, ...]:
    return warned(found, after)


def grown(after: Object, found: QuotaFacts) -> tuple[str, ...]:
    """From two workers."""
    before = copy.deepcopy(after)
    before["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    return warned(found, after, before)


def scaled(after: Object, found: QuotaFacts) -> tuple[str, ...]:
    """From two workers."""
    metadata, size = after["metadata"], after["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    typed = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata}
    sent, before = ({**typed, "spec": {"replicas": replicas}} for replicas in (size, 2))
    return warned(found, sent, before, behind=after, subResource="scale")


def warned(
    found: QuotaFacts, sent: Object, before: Object | None = None, *, behind: Object | None = None, **request: str
) -> tuple[str, ...]:
    said = verdict(sent, before, context=knowing(behind, quotas=[found]), **request).warnings
    return tuple(text for text in said if "ResourceQuota" in text)


@pytest.mark.parametrize(
    ("asked", "after", "said"),
    [
        (created, 4, "ResourceQuota team has 3 requests.nvidia.com/gpu left, and 4 more workers need 8"),
        (grown, 4, "ResourceQuota team has 3 requests.nvidia.com/gpu left, and 2 more workers need 4"),
        (scaled, 4, "ResourceQuota team has 3 requests.nvidia.com/gpu left, and 2 more workers need 4"),
        (created, 1, ""),
        (grown, 3, ""),
        (scaled, 3, ""),
        (grown, 1, ""),
    ],
)
def test_each_way_to_a_size(asked: Callable[[Object, QuotaFacts], tuple[str, ...]], after: int, said: str) -> None:
    warnings = asked(job(after, {"limits": {"nvidia.com/gpu": 2}}), limit({GPUS: "5"}, {GPUS: "8"}))
    assert [text.startswith(said) for text in warnings] == [True] * bool(said)
    assert all(len(text) <= review.LONGEST_WARNING for text in warnings)


@pytest.mark.parametrize(
    ("used", "hard", "resources", "key"),
    [
        ({"pods": "3"}, {"pods": "4"}, [{}], "pods"),
        ({"count/pods": "3"}, {"count/pods": "4"}, [{}], "count/pods"),
        ({"cpu": "500m"}, {"cpu": "1"}, [{"requests": {"cpu": "300m"}}], "cpu"),
        ({}, {"requests.memory": "1Gi"}, [{"limits": {"memory": "400Mi"}}] * 2, "requests.memory"),
        ({}, {"limits.cpu": "1"}, [{"requests": {"cpu": "1m"}, "limits": {"cpu": "1"}}], "limits.cpu"),
        # More is used than there is, since the quota was made smaller.
        ({"pods": "9"}, {"pods": "4"}, [{}], "0 pods"),
        ({}, {"pods": "2"}, [{}], ""),
        ({}, {"requests.cpu": "1", "services": "0"}, [{"requests": {"cpu": "500m"}}], ""),
        ({}, {"requests.cpu": "1"}, [{"requests": {"cpu": "much"}, "limits": None}], ""),
    ],
)
def test_each_amount(used: dict[str, str], hard: dict[str, str], resources: list[Object], key: str) -> None:
    warnings = grown(job(4, *resources), limit(used, hard))
    assert [f"{key} left, and 2 more workers" in text for text in warnings] == [True] * bool(key)


@pytest.mark.parametrize("scope", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}])
def test_a_quota_of_some_pods_is_left_out(scope: Object) -> None:
    assert grown(job(4, {}), limit({}, {"pods": "0"}, **scope)) == ()


def test_nobody_reads_more_than_a_few() -> None:
    hard = {f"requests.r{number}": "0" for number in range(20)}
    asked = {"requests": {f"r{number}": "1" for number in range(20)}}
    assert len(grown(job(4, asked), limit({}, hard))) == 5


@pytest.mark.parametrize("size", [1, 2])
def test_quotas_are_not_looked_through_where_no_worker_is_added(size: int) -> None:
    looked = list[str]()
    context = replace(NOTHING, quotas=lambda namespace: looked.append(namespace) or ())  # type: ignore[func-returns-value]
    before, after = job(2), job(size)
    after["metadata"]["annotations"] = {"note": "changed"}
    assert (verdict(after, before, context=context).allowed, looked) == (True, [])

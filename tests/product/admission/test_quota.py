"""Warnings of quotas that cannot take a size."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.admission import review
from mpijob_elastic.admission.size import QuotaFacts, read_quota
from tests.product.webhook.answers import NOTHING, knowing, verdict
from tests.product.webhook.objects import Object, mpi_job

GPUS = "requests.nvidia.com/gpu"


def limit(used: dict[str, str], hard: dict[str, str], **spec: Any) -> QuotaFacts:
    made = {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": hard, **spec}}
    return read_quota(json.dumps({**made, "status": {"hard": hard, "used": used}}).encode())


def job(replicas: int, *resources: Object) -> Object:
    """A job whose workers have these containers."""
    made = mpi_job(replicas=replicas, conditions=["Created"])
    containers = [
        {"name": f"c{number}", "resources": found} for number, found in enumerate(resources)
    ]
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers
    return made


def warned(after: Object, found: QuotaFacts, *, by: str = "an edit") -> list[str]:
    """What is said of this quota when a job is created so, or edited or scaled to this size from two workers."""
    before, behind = copy.deepcopy(after), None
    before["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    request = {"subResource": "scale"} if by == "scale" else {}
    if by == "scale":
        typed = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": after["metadata"]}
        sizes = (one["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] for one in (after, before))
        behind, (after, before) = after, [{**typed, "spec": {"replicas": size}} for size in sizes]
    context = knowing(behind, quotas=[found])
    said = verdict(after, None if by == "creation" else before, context=context, **request).warnings
    assert all(len(text) <= review.LONGEST_WARNING for text in said)
    return [text for text in said if "ResourceQuota" in text]


@pytest.mark.parametrize(
    ("by", "after", "said"),
    [
        ("creation", 4, "3 requests.nvidia.com/gpu left, and 4 more workers need 8"),
        ("an edit", 4, "3 requests.nvidia.com/gpu left, and 2 more workers need 4"),
        ("scale", 4, "3 requests.nvidia.com/gpu left, and 2 more workers need 4"),
        ("creation", 1, ""),
        ("an edit", 3, ""),
        ("scale", 3, ""),
        ("an edit", 1, ""),
    ],
)
def test_each_way_to_a_size(by: str, after: int, said: str) -> None:
    warnings = warned(
        job(after, {"limits": {"nvidia.com/gpu": 2}}), limit({GPUS: "5"}, {GPUS: "8"}), by=by
    )
    assert [text.startswith(f"ResourceQuota team has {said}") for text in warnings] == [
        True
    ] * bool(said)


def test_one_worker_that_lacks_quota_is_no_plural() -> None:
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    [said] = warned(job(3, gpus), limit({GPUS: "8"}, {GPUS: "8"}), by="an edit")
    assert said.endswith("and 1 more worker needs 2: it will not be created")


@pytest.mark.parametrize(
    ("used", "hard", "resources", "key"),
    [
        ({"pods": "3"}, {"pods": "4"}, [{}], "pods"),
        ({"count/pods": "3"}, {"count/pods": "4"}, [{}], "count/pods"),
        ({"cpu": "500m"}, {"cpu": "1"}, [{"requests": {"cpu": "300m"}}], "cpu"),
        ({}, {"requests.memory": "1Gi"}, [{"limits": {"memory": "400Mi"}}] * 2, "requests.memory"),
        (
            {},
            {"limits.cpu": "1"},
            [{"requests": {"cpu": "1m"}, "limits": {"cpu": "1"}}],
            "limits.cpu",
        ),
        # More is used than there is, since the quota was made smaller.
        ({"pods": "9"}, {"pods": "4"}, [{}], "0 pods"),
        ({}, {"pods": "2"}, [{}], ""),
        ({}, {"requests.cpu": "1", "services": "0"}, [{"requests": {"cpu": "500m"}}], ""),
        ({}, {"requests.cpu": "1"}, [{"requests": {"cpu": "much"}, "limits": None}], ""),
    ],
)
def test_each_amount(
    used: dict[str, str], hard: dict[str, str], resources: list[Object], key: str
) -> None:
    warnings = warned(job(4, *resources), limit(used, hard))
    assert [f"{key} left, and 2 more workers" in text for text in warnings] == [True] * bool(key)


CLASS = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"


@pytest.mark.parametrize(
    ("key", "ending"),
    [
        (f"requests.{CLASS}", "some will not be created"),
        ("gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "some will not be scheduled"),
        ("mig.nvidia.com.deviceclass.resource.k8s.io/devices", ""),
    ],
)
def test_a_quota_of_a_device_class(key: str, ending: str) -> None:
    warnings = warned(job(4, {"limits": {CLASS: "2"}}), limit({key: "1"}, {key: "4"}))
    said = f"ResourceQuota team has 3 {key} left, and 2 more workers need 4: {ending}"
    assert warnings == [said] * bool(ending)


@pytest.mark.parametrize(
    "scope", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}]
)
def test_a_quota_of_some_pods_is_left_out(scope: Object) -> None:
    assert warned(job(4, {}), limit({}, {"pods": "0"}, **scope)) == []


def test_nobody_reads_more_than_a_few() -> None:
    hard = {f"requests.r{number}": "0" for number in range(20)}
    asked = {"requests": {f"r{number}": "1" for number in range(20)}}
    assert len(warned(job(4, asked), limit({}, hard))) == 5


@pytest.mark.parametrize("size", [1, 2])
def test_quotas_are_not_looked_through_where_no_worker_is_added(size: int) -> None:
    looked = list[str]()
    context = replace(NOTHING, quotas=lambda namespace: looked.append(namespace) or ())  # type: ignore[func-returns-value]
    before, after = job(2), job(size)
    after["metadata"]["annotations"] = {"note": "changed"}
    assert (verdict(after, before, context=context).allowed, looked) == (True, [])

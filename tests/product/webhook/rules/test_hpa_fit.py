"""Warnings of what is around a job: HPAs that do not fit, and quotas that cannot take a size."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from tests.product.webhook.answers import knowing, running, verdict
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, mpi_job
from webhook.rules import quota, review
from webhook.rules.handlers import NOTHING
from webhook.rules.quota import QuotaFacts
from webhook.rules.review import Verdict

BOUNDS = {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "6"}
LIMITED = ["horovodrun", "-np", "2", "--max-np", "4", *ELASTIC[1:]]


def hpa(least: int | None = 2, most: int = 6, *, name: str = "a", target: Object | None = None) -> Object:
    target = target or {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "train"}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    spec = {"scaleTargetRef": target, "maxReplicas": most, **({"minReplicas": least} if least else {})}
    return {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def said(
    sent: Object, *, before: Object | None = None, behind: Object | None = None, there: tuple[Object, ...] = ()
) -> tuple[str, ...]:
    """The warnings where `behind` is the job that is known and `there` are its HPAs."""
    found = verdict(sent, before, context=knowing(behind, hpas=there))
    assert found == Verdict(warnings=found.warnings)
    assert all(len(warning) <= 140 for warning in found.warnings)
    return found.warnings


ABOVE = "HPA a: maxReplicas 8 is above mpijob-elastic/max-replicas (6): more is refused, not cut to 6"
BELOW = "HPA a: minReplicas 1 is below mpijob-elastic/min-replicas (2): less is refused, not raised to 2"
LIMIT = f"1000, the largest size without {names.MAX_REPLICAS}"
LARGE = f"HPA a: maxReplicas 1001 is above {LIMIT}: more is refused, not cut to 1000"
UNUSED = "HPA a: horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused"
FIXED = "HPA a: this job is not elastic, so new workers stay unused and surplus workers keep running"
LATE = "HPA a: the job has finished, so every scale is refused: delete the HPA"
RIVALS = "HPAs a and b scale the same job, so neither works (AmbiguousSelector): delete one of them"


BOUNDED = running(annotations=BOUNDS)
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train"}


@pytest.mark.parametrize(
    ("one", "behind", "warnings"),
    [
        pytest.param(hpa(), BOUNDED, (), id="within"),
        pytest.param(hpa(None, 1_000), running(), (), id="a job without bounds"),
        pytest.param(hpa(2, 1_001), running(), (LARGE,), id="above what is allowed without a bound"),
        pytest.param(hpa(1, 6), BOUNDED, (BELOW,), id="below"),
        pytest.param(hpa(None, 8), BOUNDED, (ABOVE, BELOW), id="both"),
        pytest.param(hpa(2, 6), running(command=LIMITED), (UNUSED,), id="above horovodrun's --max-np"),
        pytest.param(hpa(2, 6), running(command=PLAIN), (FIXED,), id="plain"),
        pytest.param(hpa(2, 8), running(annotations=BOUNDS, conditions=["Succeeded"]), (LATE,), id="finished"),
        pytest.param(hpa(2, 6), None, (), id="unknown job"),
        pytest.param(hpa(1, 99, target=DEPLOYMENT), BOUNDED, (), id="of a Deployment"),
        pytest.param(hpa(1, 99, target=DEPLOYMENT | {"kind": "MPIJob"}), BOUNDED, (), id="of another group"),
    ],
)
def test_a_new_hpa_and_its_job(one: Object, behind: Object | None, warnings: tuple[str, ...]) -> None:
    assert said(one, behind=behind) == warnings


NEW, STARTED = running(annotations=BOUNDS, conditions=None), running()
WIDER = "HPA a: maxReplicas 9 is above mpijob-elastic/max-replicas (6): more is refused, not cut to 6"


@pytest.mark.parametrize(
    ("sent", "before", "behind", "there", "warnings"),
    [
        pytest.param(NEW, None, None, (hpa(1, 8),), (ABOVE, BELOW), id="a new job with an HPA that waits for it"),
        pytest.param(NEW, None, None, (hpa(), hpa(name="b")), (RIVALS,), id="a new job with two"),
        pytest.param(hpa(name="b"), None, STARTED, (hpa(),), (RIVALS,), id="a second HPA"),
        pytest.param(hpa(2, 5), hpa(), STARTED, (hpa(),), (), id="a change of the only HPA"),
        pytest.param(hpa(1, 9), hpa(1, 8), BOUNDED, (), (WIDER,), id="another bound that does not fit"),
        pytest.param(hpa(1, 8), hpa(2, 8), BOUNDED, (), (BELOW,), id="one more bound that does not fit"),
        pytest.param(hpa(1, 8), hpa(1, 8), BOUNDED, (), (), id="no change of the HPA"),
        pytest.param(BOUNDED, STARTED, None, (hpa(1, 8),), (ABOVE, BELOW), id="bounds of the job that do not fit"),
        pytest.param(BOUNDED, BOUNDED, None, (hpa(1, 8),), (), id="no change of the job"),
    ],
)
def test_who_changes_either_is_told_what_the_change_brings_in(
    sent: Object, before: Object | None, behind: Object | None, there: tuple[Object, ...], warnings: tuple[str, ...]
) -> None:
    assert said(sent, before=before, behind=behind, there=there) == warnings


def test_hpas_of_others_are_no_rivals() -> None:
    assert said(hpa(1, 99, target=DEPLOYMENT), behind=BOUNDED, there=(hpa(name="b"),)) == ()


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
    warnings = warned(job(after, {"limits": {"nvidia.com/gpu": 2}}), limit({GPUS: "5"}, {GPUS: "8"}), by=by)
    assert [text.startswith(f"ResourceQuota team has {said}") for text in warnings] == [True] * bool(said)


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
    warnings = warned(job(4, *resources), limit(used, hard))
    assert [f"{key} left, and 2 more workers" in text for text in warnings] == [True] * bool(key)


@pytest.mark.parametrize("scope", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}])
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

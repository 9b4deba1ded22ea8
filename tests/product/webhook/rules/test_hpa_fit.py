"""HPAs and their jobs: who creates or changes either is told what does not fit, once, and nothing is refused."""

import json
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, Object, body, mpi_job
from webhook.rules import handlers, hpa_facts, review
from webhook.rules.handlers import ReviewContext

BOUNDS = {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "6"}
LIMITED = ["horovodrun", "-np", "2", "--max-np", "4", *ELASTIC[1:]]


def hpa(least: int | None = 2, most: int = 6, *, name: str = "a", target: Object | None = None) -> Object:
    target = target or {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "train"}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    spec = {"scaleTargetRef": target, "maxReplicas": most, **({"minReplicas": least} if least else {})}
    return {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def job(**facts: Any) -> Object:
    """A running elastic job of 3 workers."""
    facts = {"replicas": 3, "command": ELASTIC, "conditions": ["Created", "Running"], **facts}
    made = mpi_job(**facts)
    made["metadata"]["resourceVersion"] = "1"
    return made


def said(
    sent: Object, *, before: Object | None = None, behind: Object | None = None, there: tuple[Object, ...] = ()
) -> tuple[str, ...]:
    """The warnings where `behind` is the job that is known and `there` are its HPAs."""
    known = job_facts.read(json.dumps(behind).encode()) if behind else None
    scaling = [hpa_facts.read(json.dumps(one).encode()) for one in there]
    context = ReviewContext(
        job=lambda _namespace, name: known if name == "train" else None,
        autoscalers=lambda _namespace, name: scaling if name == "train" else (),
        now=lambda: 0.0,
    )
    verdict = handlers.answer(review.parse(body(sent, old=before)), handlers.validating(context)).verdict
    assert verdict.allowed
    assert all(len(warning) <= 140 for warning in verdict.warnings)
    return verdict.warnings


ABOVE = "HPA a: maxReplicas 8 is above mpijob-elastic/max-replicas (6): more is refused, not cut to 6"
BELOW = "HPA a: minReplicas 1 is below mpijob-elastic/min-replicas (2): less is refused, not raised to 2"
LARGE = (
    f"HPA a: maxReplicas 1001 is above 1000, the largest size without {names.MAX_REPLICAS}: more is refused, "
    "not cut to 1000"
)
UNUSED = "HPA a: horovodrun's --max-np is 4, but 1001 slots are asked for: 997 stay unused"
RIVALS = "HPAs a and b scale the same job, so neither works (AmbiguousSelector): delete one of them"


@pytest.mark.parametrize(
    ("one", "behind", "warnings"),
    [
        (hpa(), job(annotations=BOUNDS), ()),
        (hpa(None, 100), job(), ()),
        (hpa(2, 1_001), job(), (LARGE,)),
        (hpa(2, 1_001), job(command=LIMITED, annotations={names.MAX_REPLICAS: "1001"}), (UNUSED,)),
        (hpa(2, 8), job(annotations=BOUNDS), (ABOVE,)),
        (hpa(1, 6), job(annotations=BOUNDS), (BELOW,)),
        (hpa(None, 8), job(annotations=BOUNDS), (ABOVE, BELOW)),
        (
            hpa(2, 6),
            job(command=LIMITED),
            ("HPA a: horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused",),
        ),
        (
            hpa(2, 6),
            job(command=["mpirun", "x"]),
            ("HPA a: this job is not elastic, so new workers stay unused and surplus workers keep running",),
        ),
        (
            hpa(2, 8),
            job(annotations=BOUNDS, conditions=["Succeeded"]),
            ("HPA a: the job has finished, so every scale is refused: delete the HPA",),
        ),
        (hpa(2, 6), None, ()),
    ],
    ids=[
        "within", "job without bounds", "without a bound", "with a large one", "above",
        "below", "both", "max-np", "plain", "finished", "unknown job",
    ],
)  # fmt: skip
def test_a_new_hpa_and_its_job(one: Object, behind: Object | None, warnings: tuple[str, ...]) -> None:
    assert said(one, behind=behind) == warnings


def test_a_new_job_is_told_of_the_hpa_that_waits_for_it() -> None:
    new = job(annotations=BOUNDS, conditions=None)
    assert said(new, there=(hpa(1, 8),)) == (ABOVE, BELOW)
    assert said(new, there=(hpa(), hpa(name="b"))) == (RIVALS,)


def test_two_hpas_on_one_job() -> None:
    assert said(hpa(name="b"), behind=job(), there=(hpa(),)) == (RIVALS,)
    assert said(hpa(name="b"), there=(hpa(),)) == (RIVALS,)
    assert said(hpa(2, 5), before=hpa(), behind=job(), there=(hpa(),)) == ()


def test_an_update_is_told_what_it_brings_in() -> None:
    bounded = job(annotations=BOUNDS)
    assert said(hpa(1, 9), before=hpa(1, 8), behind=bounded)[0].startswith("HPA a: maxReplicas 9")
    assert said(hpa(1, 8), before=hpa(2, 8), behind=bounded) == (BELOW,)
    assert said(hpa(1, 8), before=hpa(1, 8), behind=bounded) == ()
    assert said(bounded, before=job(), there=(hpa(1, 8),)) == (ABOVE, BELOW)
    assert said(bounded, before=bounded, there=(hpa(1, 8),)) == ()


def test_hpas_of_others_are_none_of_our_business() -> None:
    for target in (
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train"},
        {"apiVersion": "example.org/v1", "kind": "MPIJob", "name": "train"},
        {"kind": "MPIJob", "name": "train"},
    ):
        assert said(hpa(1, 99, target=target), behind=job(annotations=BOUNDS), there=(hpa(name="b"),)) == ()

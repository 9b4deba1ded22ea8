"""HPAs and their jobs: who creates or changes either is told what does not fit, once, and nothing is refused."""

import pytest

from mpijob_elastic import names
from tests.product.webhook.answers import knowing, running, verdict
from tests.product.webhook.objects import ELASTIC, PLAIN, Object
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
LARGE = (
    f"HPA a: maxReplicas 1001 is above 1000, the largest size without {names.MAX_REPLICAS}: more is refused, "
    "not cut to 1000"
)
UNUSED = "HPA a: horovodrun's --max-np is 4, but 1001 slots are asked for: 997 stay unused"
RIVALS = "HPAs a and b scale the same job, so neither works (AmbiguousSelector): delete one of them"


BOUNDED = running(annotations=BOUNDS)


@pytest.mark.parametrize(
    ("one", "behind", "warnings"),
    [
        pytest.param(hpa(), BOUNDED, (), id="within"),
        pytest.param(hpa(None, 100), running(), (), id="a job without bounds"),
        pytest.param(hpa(2, 1_001), running(), (LARGE,), id="above what is allowed without a bound"),
        pytest.param(
            hpa(2, 1_001),
            running(command=LIMITED, annotations={names.MAX_REPLICAS: "1001"}),
            (UNUSED,),
            id="above horovodrun's --max-np, with a large bound",
        ),
        pytest.param(hpa(2, 8), BOUNDED, (ABOVE,), id="above"),
        pytest.param(hpa(1, 6), BOUNDED, (BELOW,), id="below"),
        pytest.param(hpa(None, 8), BOUNDED, (ABOVE, BELOW), id="both"),
        pytest.param(
            hpa(2, 6),
            running(command=LIMITED),
            ("HPA a: horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused",),
            id="above horovodrun's --max-np",
        ),
        pytest.param(
            hpa(2, 6),
            running(command=PLAIN),
            ("HPA a: this job is not elastic, so new workers stay unused and surplus workers keep running",),
            id="plain",
        ),
        pytest.param(
            hpa(2, 8),
            running(annotations=BOUNDS, conditions=["Succeeded"]),
            ("HPA a: the job has finished, so every scale is refused: delete the HPA",),
            id="finished",
        ),
        pytest.param(hpa(2, 6), None, (), id="unknown job"),
        *(
            pytest.param(hpa(1, 99, target={**target, "name": "train"}), BOUNDED, (), id=f"of others: {target}")
            for target in (
                {"apiVersion": "apps/v1", "kind": "Deployment"},
                {"apiVersion": "example.org/v1", "kind": "MPIJob"},
                {"kind": "MPIJob"},
            )
        ),
    ],
)
def test_a_new_hpa_and_its_job(one: Object, behind: Object | None, warnings: tuple[str, ...]) -> None:
    assert said(one, behind=behind) == warnings


NEW, STARTED = running(annotations=BOUNDS, conditions=None), running()
WIDER = "HPA a: maxReplicas 9 is above mpijob-elastic/max-replicas (6): more is refused, not cut to 6"


@pytest.mark.parametrize(
    ("sent", "before", "behind", "there", "warnings"),
    [
        pytest.param(
            NEW, None, None, (hpa(1, 8),), (ABOVE, BELOW), id="a new job is told of the HPA that waits for it"
        ),
        pytest.param(NEW, None, None, (hpa(), hpa(name="b")), (RIVALS,), id="a new job with two"),
        pytest.param(hpa(name="b"), None, STARTED, (hpa(),), (RIVALS,), id="a second HPA"),
        pytest.param(hpa(name="b"), None, None, (hpa(),), (RIVALS,), id="a second HPA of an unknown job"),
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
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train"}
    assert said(hpa(1, 99, target=deployment), behind=BOUNDED, there=(hpa(name="b"),)) == ()

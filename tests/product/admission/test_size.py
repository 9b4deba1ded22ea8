"""Verdicts on a scale: bounds and their source, the job's end, horovodrun's limits, what a dry run shows."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.admission import size
from mpijob_elastic.admission.review import Refusal, Verdict
from tests.product.webhook.answers import knowing, running, verdict
from tests.product.webhook.objects import ELASTIC, PLAIN, Object

BOUNDS = {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "5"}
LIMITED = ["horovodrun", "-np", "4", "--min-np", "2", "--max-np", "4", *ELASTIC[3:]]


def scale_of(replicas: int, *, uid: str = "5f1b") -> Object:
    metadata = {"name": "train", "namespace": "default", "uid": uid}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def scaled(
    behind: Object | None, replicas: int, *, before: int = 3, uid: str = "5f1b", **request: Any
) -> Verdict:
    sent, old = (scale_of(size, uid=uid) for size in (replicas, before))
    return verdict(sent, old, context=knowing(behind), **{"subResource": "scale", **request})


BOUNDED = running(annotations=BOUNDS)
OVER = running(conditions=["Created", "Succeeded"])
GOING = {
    **BOUNDED,
    "metadata": {**BOUNDED["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
}
ADVICE = "use 2 to 5, or change the annotation"
ABOVE = f"6 is above metadata.annotations[mpijob-elastic/max-replicas] (5); {ADVICE}"
BELOW = f"1 is below metadata.annotations[mpijob-elastic/min-replicas] (2); {ADVICE}"
NONE = "0 is below 1, the smallest size that mpi-operator accepts; delete the job to stop it"
LATE = "4 has no effect: the job has finished; create it again to run it at that size"


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("behind", "replicas", "message"),
    [
        pytest.param(BOUNDED, 6, ABOVE, id="above"),
        pytest.param(BOUNDED, 1, BELOW, id="below"),
        pytest.param(BOUNDED, 0, NONE, id="none"),
        pytest.param(OVER, 4, LATE, id="the job has finished"),
    ],
)
def test_what_is_refused_with_its_reason(
    behind: Object, replicas: int, message: str, dry_run: bool
) -> None:
    refusal = Refusal(field="spec.replicas", message=message)
    assert scaled(behind, replicas, dryRun=dry_run) == Verdict(refusals=(refusal,))


FEW = "horovodrun's --min-np is 2, but 1 slot is asked for: training waits for more"
STAY = "this job is not elastic, so its surplus workers keep running"
UNUSED = "this job is not elastic, so no rank runs in the new workers, which hold their resources"
MANY = "horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused"


@pytest.mark.parametrize(
    ("behind", "sizes", "warnings"),
    [
        pytest.param(BOUNDED, (3, 2), (), id="the smallest"),
        pytest.param(BOUNDED, (3, 5), (), id="the largest"),
        pytest.param(running(), (3, 1_000), (), id="without a bound"),
        pytest.param(running(), (20_000, 10_000), (), id="nearer to what may be"),
        pytest.param(OVER, (3, 3), (), id="a finished job keeps its size"),
        pytest.param(GOING, (3, 9), (), id="the job is being deleted"),
        pytest.param(
            running(annotations={**BOUNDS, names.ENABLED: "false"}),
            (3, 6),
            (UNUSED,),
            id="bounds switched off",
        ),
        pytest.param(None, (3, 9), (size.UNKNOWN,), id="the job is not known"),
        pytest.param(
            running(annotations=BOUNDS, uid="the last"),
            (3, 9),
            (size.UNKNOWN,),
            id="the last of that name",
        ),
        pytest.param(running(command=LIMITED), (3, 4), (), id="within horovodrun's limits"),
        pytest.param(running(command=LIMITED), (3, 6), (MANY,), id="above --max-np"),
        pytest.param(running(command=LIMITED, slots=2), (3, 1), (), id="enough slots"),
        pytest.param(running(command=LIMITED), (3, 1), (FEW,), id="below --min-np"),
        pytest.param(running(command=PLAIN), (3, 1), (STAY,), id="not elastic"),
        pytest.param(running(command=PLAIN), (3, 4), (UNUSED,), id="not elastic and larger"),
        *(
            pytest.param(
                running(command=PLAIN, conditions=None),
                (3, after),
                (),
                id=f"not elastic, not started, {after}",
            )
            for after in (1, 4)
        ),
    ],
)
def test_what_is_allowed_and_perhaps_doubtful(
    behind: Object | None, sizes: tuple[int, int], warnings: Any
) -> None:
    assert scaled(behind, sizes[1], before=sizes[0]) == Verdict(warnings=warnings)


@pytest.mark.parametrize(
    ("facts", "replicas", "shown"),
    [
        ({}, 1, ": worker-2, worker-1 drain for at most 1m, then are deleted"),
        (
            {"annotations": {names.DRAIN_TIMEOUT: "90s"}},
            2,
            ": worker-2 drains for at most 1m30s, then is deleted",
        ),
        ({}, 4, ": worker-3 is created, and published once Ready"),
        ({}, 9, ": worker-3, worker-4, worker-5 and 3 more are created, and published once Ready"),
        ({"conditions": None}, 1, " before the job starts"),
        (
            {"command": PLAIN},
            1,
            ": worker-2, worker-1 keep running, because the job is not elastic",
        ),
        ({"command": PLAIN}, 4, ": worker-3 starts unused, because the job is not elastic"),
    ],
)
def test_a_dry_run_shows_what_would_happen(
    facts: dict[str, Any], replicas: int, shown: str
) -> None:
    assert scaled(running(**facts), replicas, dryRun=True) == Verdict(
        warnings=(f"would scale 3→{replicas}{shown}",)
    )


@pytest.mark.parametrize(
    "request_fields",
    [{"operation": "CREATE", "oldObject": None}, {"subResource": ""}, {"subResource": "status"}],
)
def test_only_updates_of_scales_are_judged(request_fields: dict[str, Any]) -> None:
    assert scaled(BOUNDED, 9, **request_fields) == Verdict()


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_warned_of_a_scale_that_a_capability_refuses(dry_run: bool) -> None:
    job = running(command=LIMITED, annotations={names.SIZES: "1,4"})
    found = scaled(job, 5, dryRun=dry_run)
    assert [one.field for one in found.refusals] == ["spec.replicas"]
    assert found.warnings == ()

"""Verdicts on a scale: bounds and their source, the job's end, horovodrun's limits, what a dry run shows."""

import copy
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.admission import size
from mpijob_elastic.admission.review import Refusal, Verdict
from tests.product.webhook.answers import NOTHING, knowing, running, verdict
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
ADVICE = (
    "use 2 to 5, or change the annotation: `mpijob-elastic set bounds train -n default --{} {}`"
)
ABOVE = (
    f"6 is above metadata.annotations[mpijob-elastic/max-replicas] (5); {ADVICE.format('max', 6)}"
)
BELOW = (
    f"1 is below metadata.annotations[mpijob-elastic/min-replicas] (2); {ADVICE.format('min', 1)}"
)
NONE = (
    "0 is below 1, the smallest size that mpi-operator accepts; annotate the job "
    "mpijob-elastic/scale-to-zero: suspend, so that 0 suspends it, or delete the job to stop it"
)
ZERO = {names.SCALE_TO_ZERO: "suspend"}
TO_ZERO = running(annotations={**BOUNDS, **ZERO})
PLAIN_ZERO = running(annotations=ZERO, command=PLAIN)
NODE_ZERO = running(annotations=ZERO)
NODE_ZERO["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] = "node-0"
QUEUED_ZERO = running(annotations={**ZERO, "scheduling.x-k8s.io/suspend": "true"})
PARKED_ZERO = running(annotations={**ZERO, names.PARKED: "1"})
NEW_ZERO = running(annotations=ZERO, conditions=None)
LATE = "4 has no effect: the job has finished; create it again to run it at that size"


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("behind", "replicas", "message"),
    [
        pytest.param(BOUNDED, 6, ABOVE, id="above"),
        pytest.param(BOUNDED, 1, BELOW, id="below"),
        pytest.param(BOUNDED, 0, NONE, id="none"),
        pytest.param(OVER, 4, LATE, id="the job has finished"),
        pytest.param(OVER, 0, f"0{LATE[1:]}", id="finished, and none"),
        pytest.param(
            PLAIN_ZERO,
            0,
            "0 suspends the job, and only an elastic job can be suspended",
            id="none, of a plain job",
        ),
        pytest.param(
            NODE_ZERO,
            0,
            "0 suspends the job, and pods whose template names their node cannot wait; use "
            "nodeSelector",
            id="none, of a job that names its node",
        ),
        pytest.param(
            QUEUED_ZERO,
            0,
            "0 suspends the job, but this job is in a queue, which decides when it runs",
            id="none, of a queued job",
        ),
        pytest.param(
            PARKED_ZERO,
            0,
            "0 suspends the job, but some of its workers are parked; bring them back first",
            id="none, with parked workers",
        ),
        pytest.param(
            NEW_ZERO,
            0,
            "0 suspends the job, but mpi-operator has not started it; set mpijob-elastic/suspend, "
            "and a size of at least 1",
            id="none, before the operator has made its objects",
        ),
        pytest.param(TO_ZERO, 1, BELOW, id="between 0 and the smallest"),
        pytest.param(
            BOUNDED, -1, "-1 is below 0; use 1 or more, or delete the job to stop it", id="negative"
        ),
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
GENERAL = (
    "mpirun keeps its size, unless elastic.sh starts it: command: [/etc/mpi/elastic.sh, --, "
    'mpirun, -np, "{np}", -machinefile, "{hostfile}", ...]'
)
UNDER_ELASTIC = [
    *("/etc/mpi/elastic.sh", "--min-np", "2", "--max-np", "4", "--"),
    *("mpirun", "-np", "{np}", "python", "train.py"),
]
MANY = "horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused"


@pytest.mark.parametrize(
    ("behind", "sizes", "warnings"),
    [
        pytest.param(BOUNDED, (3, 2), (), id="the smallest"),
        pytest.param(TO_ZERO, (3, 0), (), id="none, which suspends the job"),
        pytest.param(TO_ZERO, (0, 2), (), id="from none to the smallest"),
        pytest.param(TO_ZERO, (0, 0), (), id="none stays"),
        pytest.param(
            running(annotations={**ZERO, names.SIZES: "2,4"}), (4, 0), (), id="none beside sizes"
        ),
        pytest.param(
            running(annotations=ZERO, command=LIMITED), (3, 0), (), id="none, below --min-np"
        ),
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
        pytest.param(running(command=UNDER_ELASTIC), (3, 4), (), id="within elastic.sh's limits"),
        pytest.param(
            running(command=UNDER_ELASTIC),
            (3, 6),
            (MANY.replace("horovodrun", "elastic.sh"),),
            id="above --max-np of elastic.sh",
        ),
        pytest.param(
            running(command=UNDER_ELASTIC),
            (3, 1),
            (FEW.replace("horovodrun", "elastic.sh"),),
            id="below --min-np of elastic.sh",
        ),
        pytest.param(running(command=PLAIN), (3, 1), (STAY, GENERAL), id="not elastic"),
        pytest.param(
            running(command=PLAIN), (3, 4), (UNUSED, GENERAL), id="not elastic and larger"
        ),
        pytest.param(running(command=["./train.sh"]), (3, 1), (STAY,), id="not elastic, a script"),
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
        ({"annotations": ZERO}, 0, ": the job is suspended, and its pods go"),
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


def at(replicas: int, base: Object, **annotations: str | None) -> Object:
    """The job with this `Worker.replicas`, and with these annotations or, for None, without them."""
    made = copy.deepcopy(base)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas
    found = made["metadata"].get("annotations", {}) | {
        f"{names.PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()
    }
    made["metadata"]["annotations"] = {key: value for key, value in found.items() if value}
    return made


REPLICAS = "spec.mpiReplicaSpecs.Worker.replicas"


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param(at(3, TO_ZERO), at(0, TO_ZERO), "", id="0 suspends"),
        pytest.param(at(0, TO_ZERO), at(0, TO_ZERO, note="x"), "", id="another edit at zero"),
        pytest.param(at(0, TO_ZERO), at(2, TO_ZERO), "", id="it is resumed"),
        pytest.param(at(0, TO_ZERO), at(1, TO_ZERO), BELOW, id="to less than the smallest"),
        pytest.param(at(3, BOUNDED), at(0, BOUNDED), NONE, id="without the annotation"),
        pytest.param(
            at(0, TO_ZERO),
            at(0, TO_ZERO, enabled="false"),
            "0 suspends the job, and only an elastic job can be suspended",
            id="it is no longer elastic",
        ),
        pytest.param(
            at(0, TO_ZERO), at(0, TO_ZERO, scale_to_zero=None), NONE, id="the annotation goes"
        ),
        pytest.param(
            at(0, TO_ZERO),
            at(3, TO_ZERO, scale_to_zero=None),
            "",
            id="the annotation goes with another size",
        ),
        pytest.param(
            at(0, BOUNDED), at(0, BOUNDED, note="x"), "", id="an older mistake is left alone"
        ),
        pytest.param(
            at(0, BOUNDED), at(0, TO_ZERO), "", id="the annotation mends an older mistake"
        ),
        pytest.param(
            None,
            at(0, NEW_ZERO),
            "0 suspends the job, but mpi-operator has not started it; set mpijob-elastic/suspend, "
            "and a size of at least 1",
            id="created at 0",
        ),
        pytest.param(None, at(0, running(conditions=None)), NONE, id="created at 0 by mistake"),
        pytest.param(
            None, at(0, running(conditions=None, command=PLAIN)), "", id="a plain job is as before"
        ),
    ],
)
def test_the_size_0_in_an_edit(before: Object | None, after: Object, refused: str) -> None:
    found = verdict(after, before, context=NOTHING)
    wanted = (Refusal(field=REPLICAS, message=refused),) if refused else ()
    assert found.refusals == wanted


def test_a_bad_value_of_the_annotation_is_refused() -> None:
    wrong = at(3, running(), scale_to_zero="true")
    [refusal] = verdict(wrong, at(3, running()), context=NOTHING).refusals
    assert refusal.message == '"true" is not allowed; use "suspend"'


def test_a_plain_job_is_told_that_the_annotation_has_no_effect() -> None:
    plain = running(command=PLAIN)
    said = verdict(at(3, plain, scale_to_zero="suspend"), at(3, plain), context=NOTHING).warnings
    assert "mpijob-elastic/scale-to-zero has no effect: this job is not elastic" in said

"""Verdicts on an MPIJob name the field, its value and the allowed values."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission.review import LONGEST_WARNING, Refusal, Verdict
from mpijob_elastic.admission.size import QuotaFacts
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.bounds import LONGEST_NOTICES
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.names import SUSPEND
from tests.product.webhook.answers import NOTHING, answer, knowing
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, mpi_job
from webhook.rules import validate


def on_create(job: Object) -> Verdict:
    read = msgspec.convert(job, MPIJob)
    edit = validate.Edit(job=read, new=capabilities.of(read))
    return validate.judged(edit, context=NOTHING)


def on_update(job: Object, before: Object) -> Verdict:
    after, earlier = msgspec.convert(job, MPIJob), msgspec.convert(before, MPIJob)
    new, old = capabilities.of(after), capabilities.of(earlier)
    edit = validate.Edit(job=after, new=new, before=earlier, old=old)
    return validate.judged(edit, context=NOTHING)


def sized(replicas: int = 3, **facts: Any) -> Object:
    """A running elastic job."""
    return mpi_job(replicas=replicas, **{"conditions": ["Created", "Running"], **facts})


def annotated(**annotations: str) -> Object:
    """A running elastic job of 3 workers with our annotations, given without prefix and with underscores."""
    named = {f"mpijob-elastic/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return sized(annotations=named)


def sizes(least: str, most: str) -> dict[str, str]:
    return {"min_replicas": least, "max_replicas": most}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpi_job(command=PLAIN), id="plain"),
        pytest.param(annotated(enabled="true"), id="switched on"),
        pytest.param(annotated(**sizes("3", "3")), id="of one size"),
        pytest.param(annotated(drain_timeout="90s", replace_failed_workers="false"), id="others"),
        pytest.param(
            annotated(min_replicas="9", enabled="false"), id="bounds that are switched off"
        ),
    ],
)
def test_a_job_without_mistakes_is_let_through_without_a_word(job: Object) -> None:
    assert on_create(job) == Verdict()


SIZE = "spec.mpiReplicaSpecs.Worker.replicas"
COUNT = "use a whole number from 1 to 10000"
BOOLEAN = 'is not allowed; use "true" or "false"'
PERIOD = 'use a duration from 0s to 24h, such as "90s" or "2m30s"'
BOUNDS = "use it beside mpijob-elastic/min-replicas and mpijob-elastic/max-replicas, the bounds of the size"
CROSSED = "use a number not above mpijob-elastic/max-replicas (2)"
ABOVE = "3 is above metadata.annotations[mpijob-elastic/max-replicas] (2); use 1 to 2, or change the annotation"
BELOW = "3 is below metadata.annotations[mpijob-elastic/min-replicas] (4); use 4 {}, or change the annotation"
BAD: list[Any] = [
    pytest.param({"enabled": "yes"}, "enabled", f'"yes" {BOOLEAN}', id="no boolean"),
    pytest.param({"enabled": ""}, "enabled", f'"" {BOOLEAN}', id="empty"),
    pytest.param(
        {"min_replicas": "x"}, "min-replicas", f'"x" is not allowed; {COUNT}', id="no number"
    ),
    pytest.param(
        {"max_replicas": "0"}, "max-replicas", f'"0" is not allowed; {COUNT}', id="no worker"
    ),
    pytest.param(
        {"drain_timeout": "90"}, "drain-timeout", f'"90" is not allowed; {PERIOD}', id="no unit"
    ),
    pytest.param(
        sizes("4", "2"), "min-replicas", f'"4" is not allowed; {CROSSED}', id="the bounds cross"
    ),
    pytest.param({"max_replicas": "2"}, SIZE, ABOVE, id="above the largest size"),
    pytest.param(sizes("4", "8"), SIZE, BELOW.format("to 8"), id="below the smallest size"),
    pytest.param({"min_replicas": "4"}, SIZE, BELOW.format("or more"), id="below the only bound"),
    pytest.param(
        {"autoscale": "cpu=7"},
        "autoscale",
        f'"cpu=7" is not allowed; {BOUNDS}',
        id="an HPA without bounds",
    ),
]


@pytest.mark.parametrize(("annotations", "at", "message"), BAD)
def test_refused_when_a_request_brings_it_in(
    annotations: dict[str, str], at: str, message: str
) -> None:
    field = at if at == SIZE else f"metadata.annotations[mpijob-elastic/{at}]"
    for verdict in (
        on_create(annotated(**annotations)),
        on_update(annotated(**annotations), annotated()),
    ):
        assert verdict.refusals == (Refusal(field=field, message=message),)
        assert not verdict.allowed


@pytest.mark.parametrize(("annotations", "_at", "_message"), BAD)
def test_what_was_bad_before_never_blocks_another_change(
    annotations: dict[str, str], _at: str, _message: str
) -> None:
    before = annotated(**annotations)
    said = before["metadata"]["annotations"] | {"mpijob-elastic/status": "draining"}
    after = {
        **before,
        "metadata": {**before["metadata"], "labels": {"team": "a"}, "annotations": said},
    }
    assert (
        on_update(after, before)
        == on_update({**after, "status": {"conditions": []}}, before)
        == Verdict()
    )


@pytest.mark.parametrize("command", [ELASTIC, PLAIN])
@pytest.mark.parametrize("length", [63, 64, 70])
def test_only_a_new_job_is_refused_for_a_name_that_gets_no_pod(
    length: int, command: list[str]
) -> None:
    job = annotated()
    job["metadata"]["name"] = "n" * length
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] = command
    message = (
        f"a name of {length} characters is longer than a pod's label may be, so mpi-operator makes "
        "no pod; use at most 63"
    )
    expected = (Refusal(field="metadata.name", message=message),) if length > 63 else ()
    assert on_create(job).refusals == expected
    assert on_update(annotated_like(job), job).allowed


def annotated_like(job: Object) -> Object:
    """The job with another annotation."""
    metadata = {**job["metadata"], "annotations": {**job["metadata"]["annotations"], "a": "b"}}
    return {**job, "metadata": metadata}


def test_a_job_that_is_being_deleted_is_never_blocked() -> None:
    before, after = annotated(), annotated(enabled="yes", max_replicas="2")
    for job in (before, after):
        job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert answer(after, before).verdict == Verdict()


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_is_judged_like_any_other(end: str) -> None:
    """Its user may take the end back, and would have gone round every rule; but nobody is warned of what is over."""
    before, after = annotated(), annotated(enabled="yes", max_replicas="2", minreplicas="1")
    expected = on_update(after, before)
    assert expected.refusals
    assert expected.warnings
    for job in (before, after):
        job["status"]["conditions"].append({"type": end, "status": "True"})
        job["status"]["completionTime"] = "2026-01-01T00:00:00Z"
    assert on_update(after, before) == Verdict(refusals=expected.refusals)
    assert on_update(after, after) == Verdict()


def test_a_bad_run_policy_is_refused_once_the_job_asks_for_it() -> None:
    asks, silent = annotated(run_policy="true"), annotated()
    for job in (asks, silent):
        job["spec"]["runPolicy"] = {"activeDeadlineSeconds": "1h"}
    message = '"1h" is not allowed; use a whole number from 1 to 2147483647'
    for verdict in (
        on_create(asks),
        on_update(asks, silent),
        on_update(asks, annotated(run_policy="true")),
    ):
        assert verdict.refusals == (
            Refusal(field="spec.runPolicy.activeDeadlineSeconds", message=message),
        )
    assert all(
        found.allowed
        for found in (on_create(silent), on_update(asks, asks), on_update(silent, asks))
    )


def test_several_problems_are_all_named() -> None:
    verdict = on_create(annotated(enabled="maybe", drain_timeout="soon"))
    fields = [refusal.field for refusal in verdict.refusals]
    assert fields == [
        f"metadata.annotations[{key}]" for key in (names.ENABLED, names.DRAIN_TIMEOUT)
    ]


MAX, MIN = names.MAX_REPLICAS, names.MIN_REPLICAS
OFF, OWN = {names.ENABLED: "false"}, ["/start.sh"]
WIDE = [*ELASTIC[:1], "--max-np", "801", *ELASTIC[1:]]
WIDEST = [*WIDE[:2], "1001", *WIDE[3:]]
UNBOUNDED = f"is above {{0}}, the largest size without metadata.annotations[{MAX}]; use {{1}} to {{0}}, or set the annotation"
LARGEST = "is above 10000, the largest size; use 1 to 10000"


@pytest.mark.parametrize(
    ("facts", "largest", "message"),
    [
        pytest.param({}, 1_000, UNBOUNDED.format(1000, 1), id="no bound"),
        pytest.param(
            {"command": WIDE, "slots": 8},
            1_010,
            UNBOUNDED.format(1010, 1),
            id="max-np of 8 slots a worker",
        ),
        pytest.param({"command": WIDE}, 8_010, UNBOUNDED.format(8010, 1), id="max-np"),
        pytest.param({"command": WIDEST}, 10_000, LARGEST, id="a large max-np"),
        pytest.param({"annotations": OFF}, 10_000, LARGEST, id="switched off"),
        pytest.param({"command": PLAIN}, 10_000, LARGEST, id="plain"),
        pytest.param({"annotations": {MAX: "10000"}}, 10_000, LARGEST, id="a bound"),
        pytest.param(
            {"annotations": {MIN: "1200"}},
            1_200,
            UNBOUNDED.format(1200, 1200),
            id="a large smallest size",
        ),
    ],
)
def test_a_size_that_must_be_a_typing_error_is_refused(
    facts: dict[str, Any], largest: int, message: str
) -> None:
    small, fits, over = (
        sized(replicas, **facts) for replicas in (largest - 1, largest, largest + 1)
    )
    for verdict in (on_create(fits), on_update(fits, small)):
        assert verdict.allowed
    for verdict in (on_create(over), on_update(over, fits)):
        assert verdict.refusals == (Refusal(field=SIZE, message=f"{largest + 1} {message}"),)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        pytest.param(
            sized(4, annotations={MAX: "2"}),
            sized(5, annotations={MAX: "2"}),
            False,
            id="further out",
        ),
        pytest.param(
            sized(4, annotations={MAX: "2"}), sized(3, annotations={MAX: "2"}), True, id="nearer"
        ),
        pytest.param(sized(5_000), sized(4_000), True, id="nearer without a bound"),
        pytest.param(sized(5), sized(-1), True, id="less than none, which its definition refuses"),
        pytest.param(sized(5_000), sized(5_000, slots=2), True, id="something else"),
        pytest.param(
            sized(5_000), sized(5_000, annotations={MAX: "4999"}), True, id="a bound that is nearer"
        ),
        pytest.param(
            sized(5_000, annotations={MAX: "5000"}), sized(5_000), False, id="without the bound"
        ),
        pytest.param(sized(1_200, command=PLAIN), sized(1_200), False, id="elastic now"),
    ],
)
def test_only_what_goes_further_out_of_bounds_is_refused(
    before: Object, after: Object, allowed: bool
) -> None:
    assert on_update(after, before).allowed is allowed


def test_an_unknown_annotation_is_warned_of_once_with_the_nearest_name() -> None:
    written = "mpijob-elastic/drain_timeout"
    job = mpi_job(command=PLAIN, annotations={written: "1", "example.com/enable": "x"})
    warning = f"metadata.annotations[{written}] is not known and has no effect; did you mean {names.DRAIN_TIMEOUT}?"
    assert on_create(job) == Verdict(warnings=(warning,))
    assert on_update(job, mpi_job(command=PLAIN)) == Verdict(warnings=(warning,))
    assert on_update(job, job) == Verdict()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mpijob.elastic/max-replicas", names.MAX_REPLICAS),
        ("mpijobelastic/max-replica", names.MAX_REPLICAS),
        ("mpi-job-elastic/drain-timeout", names.DRAIN_TIMEOUT),
        ("MPIJob-Elastic/enabled", names.ENABLED),
        ("mpijobs-elastic/parked", names.PARKED),
        ("mpi-operator.example.com/enabled", ""),
        ("kubeflow.org/enabled", ""),
        ("elastic.co/enabled", ""),
        ("mpijob.elastic", ""),
        ("x" * 300_000 + "/enabled", ""),
    ],
)
def test_a_prefix_that_is_nearly_ours_is_warned_of(written: str, meant: str) -> None:
    job = mpi_job(command=PLAIN, annotations={written: "1"})
    key = written[:64]
    near = f"metadata.annotations[{key}] is not known and has no effect; did you mean {meant}?"
    assert on_create(job).warnings == ((near,) if meant else ())


def test_an_annotation_of_an_earlier_version_is_warned_of_with_what_takes_its_place() -> None:
    [warning] = on_create(annotated(**{"delete-without-discovery": "true"})).warnings
    assert "has no effect any more" in warning
    assert "`kubectl delete pod JOB-worker-2`" in warning


def test_of_many_unknown_annotations_a_few_are_named() -> None:
    verdict = on_create(annotated(**{f"x{number:05}": "" for number in range(11_000)}))
    assert [warning.partition("]")[0][-5:] for warning in verdict.warnings] == [
        f"{n:05}" for n in range(5)
    ]


def queued(queue: str = "", least: str = "1", **facts: Any) -> Object:
    """A job with this label and this least size."""
    job = sized(**{"annotations": {MIN: least}, **facts})
    job["spec"]["cleanPodPolicy"] = "Running"
    return {**job, "metadata": {**job["metadata"], "labels": {LABEL_QUEUE: queue} if queue else {}}}


BECOMES = (
    "this job becomes elastic with a new launcher; a running launcher keeps its workers until you type "
    "`mpijob-elastic upgrade adopt train -n default`, which restarts training from its last checkpoint"
)
STAYS = f"{SIZE} 3 to 1: this job is not elastic, so its surplus workers stay"
LINE = (
    "mpirun keeps its size, unless elastic.sh starts it: command: [/etc/mpi/elastic.sh, --, "
    'mpirun, -np, "{np}", -machinefile, "{hostfile}", python, train.py]'
)
HOROVODRUN = (
    ". Run horovodrun with --host-discovery-script /etc/mpi/discover_hosts.sh, in a new launcher"
)
UNUSED = (
    f"{SIZE} 1 to 3: this job is not elastic, so no rank runs in the new workers, which hold their resources until the "
    "job has ended"
)
KEEPS = (
    "spec.slotsPerWorker 1 to 2: the running job keeps 1 until it has a new launcher: suspend and resume it, or, if it "
    "is not elastic, delete and recreate it (this restarts training)"
)
UNREAD = (
    "no horovodrun can be read in the launcher's command: its -np, --min-np, --max-np are unknown"
)
QUEUE = f"metadata.labels[{LABEL_QUEUE}]: "
MOVED = f"{QUEUE}an admitted job keeps its quota of team; to move it, suspend and resume it"
LEFT = f"{QUEUE}the job leaves its queue: others get its quota at once, and its pods go on"
JOINED = f"{QUEUE}pods that run go on outside the quota until Kueue admits the job"
STARTS = (
    "this write also removes what suspended the job, so the job starts again; to keep it suspended, type "
    "`mpijob-elastic suspend train -n default`"
)
HELD = {SUSPEND: "true", names.STATUS: "Suspended: annotation mpijob-elastic/suspend"}
LEAST = f"{MIN}: an admitted job keeps the quota of its least size at the start; to ask again, suspend and resume it"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param(
            sized(3, command=PLAIN),
            sized(1, command=PLAIN),
            f"{STAYS}\n{LINE}",
            id="plain and smaller",
        ),
        pytest.param(
            sized(1, command=PLAIN),
            sized(3, command=PLAIN),
            f"{UNUSED}\n{LINE}",
            id="plain and larger",
        ),
        pytest.param(
            sized(3, command=OWN),
            sized(1, command=OWN),
            f"{STAYS}{HOROVODRUN}",
            id="an own script and smaller",
        ),
        pytest.param(sized(3, command=PLAIN), sized(3, command=PLAIN), "", id="plain and as large"),
        pytest.param(sized(3), sized(1), "", id="elastic and smaller"),
        pytest.param(
            sized(command=OWN),
            sized(command=OWN, annotations={names.ENABLED: "true"}),
            f"{BECOMES}\n{UNREAD}",
            id="on",
        ),
        pytest.param(sized(command=PLAIN), sized(), BECOMES, id="another command"),
        # The launcher that runs reads the list, and does so again.
        pytest.param(sized(annotations=OFF), sized(), "", id="elastic again"),
        pytest.param(sized(slots=1), sized(slots=2), KEEPS, id="other slots"),
        pytest.param(queued("team"), queued("other"), MOVED, id="another queue"),
        pytest.param(queued("team", "2"), queued("", "1"), LEFT, id="no queue any more"),
        pytest.param(queued("", "1"), queued("team", "2"), JOINED, id="a queue now"),
        pytest.param(
            queued("team", "2"), queued("team", "3"), LEAST, id="another least size in a queue"
        ),
        pytest.param(queued("", "2"), queued("", "3"), "", id="another least size in no queue"),
        pytest.param(sized(annotations=HELD), sized(), STARTS, id="suspended and replaced"),
        pytest.param(
            sized(annotations=HELD),
            sized(annotations={names.STATUS: HELD[names.STATUS]}),
            "",
            id="resumed",
        ),
        pytest.param(sized(annotations=HELD), sized(annotations=HELD), "", id="still suspended"),
    ],
)
def test_an_edit_of_a_started_job_is_told_what_it_does_not_do(
    before: Object, after: Object, told: str
) -> None:
    assert on_update(after, before) == Verdict(warnings=tuple(told.splitlines()))
    assert all(len(warning) <= LONGEST_WARNING for warning in told.splitlines())
    for job in (before, after):
        del job["status"]
    # What its command lacks is told of a job that has not started, too.
    doubts = tuple(warning for warning in told.splitlines() if warning == UNREAD)
    assert on_update(after, before) == Verdict(warnings=doubts)


@pytest.mark.parametrize("asking", [{SUSPEND: "true"}, {AUTOSCALE: "cpu=70", MIN: "1", MAX: "8"}])
def test_a_plain_job_is_told_once_what_has_no_effect(asking: dict[str, str]) -> None:
    plain, asked = (sized(command=PLAIN, annotations=said) for said in ({}, asking))
    told = f"{next(iter(asking))} has no effect: this job is not elastic"
    assert told in on_create(asked).warnings
    assert told in on_update(asked, plain).warnings
    assert told not in on_update(asked, asked).warnings
    assert told not in on_create(sized(annotations=asking)).warnings


def test_a_new_job_is_told_that_kueue_does_not_make_it_elastic() -> None:
    asking = queued("team")
    asking["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"] = "true"
    [told] = [one for one in on_create(asking).warnings if "elastic-job" in one]
    assert "has no effect on an MPIJob" in told
    assert "mpijob-elastic/min-replicas" in told
    assert not [one for one in on_update(asking, asking).warnings if "elastic-job" in one]
    assert not [one for one in on_create(queued("team")).warnings if "elastic-job" in one]


def placed(node: str, *, queue: str = "", role: str = "Worker", **facts: Any) -> Object:
    """A job with a template that names a node, in a queue of Kueue or in none."""
    job = sized(**facts)
    job["metadata"]["labels"] = {LABEL_QUEUE: queue} if queue else {}
    job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["nodeName"] = node
    return job


# Anybody with the right to edit may write a status, and take it back.
ENDED = {
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True"}],
        "completionTime": "2026-01-01T00:00:00Z",
    }
}


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_a_queued_job_may_not_choose_a_node_past_its_queue(role: str) -> None:
    field = f"spec.mpiReplicaSpecs.{role}.template.spec.nodeName"
    for verdict in (
        on_create(placed("gpu-7", queue="team", role=role)),
        on_update(placed("gpu-7", queue="team", role=role), placed("", queue="team", role=role)),
        on_update(placed("gpu-7", queue="team", role=role), placed("gpu-7", role=role)),
        on_update(
            placed("gpu-7", queue="team", role=role), placed("", queue="team", role=role) | ENDED
        ),
    ):
        (refusal,) = verdict.refusals
        assert (refusal.field, "use nodeSelector" in refusal.message) == (field, True)


def test_a_job_that_no_queue_holds_may_choose_a_node() -> None:
    queued = placed("gpu-7", queue="team")
    assert not on_create(placed("gpu-7")).refusals
    assert not on_update(queued, queued).refusals
    assert not on_update(placed("gpu-7"), queued).refusals


def test_the_annotations_of_a_job_leave_room_for_the_notice_by_which_it_is_stopped() -> None:
    """The API server takes 256 KiB of them; a job whose notice it refuses keeps the quota that others want back."""

    def noted(size: int, **facts: Any) -> Object:
        return sized(annotations={"note": "x" * size, names.STATUS: "y" * LONGEST_NOTICES}, **facts)

    fits, full = noted(240_000), noted(2**18 - 100)
    assert on_create(fits).allowed
    for verdict in (
        on_create(full),
        on_update(full, fits),
        on_update(full, fits | ENDED),
        on_update(full, noted(2**18 - 100, command=PLAIN)),
    ):
        assert [refusal.field for refusal in verdict.refusals] == ["metadata.annotations"]
    assert on_update(full, full).allowed, "it came while the webhook was away"
    assert on_update(fits, full).allowed
    assert on_create(noted(2**18 - 100, command=PLAIN)).allowed


FULL = QuotaFacts(metadata=Identity(name="full", namespace="default"), left={"pods": 0})
TWO_TO_FOUR = ["horovodrun", "-np", "2", "--min-np", "2", "--max-np", "4", *ELASTIC[3:]]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("replicas", "annotations", "refused"),
    [
        (1, {names.MIN_REPLICAS: "2"}, "spec.mpiReplicaSpecs.Worker.replicas"),
        (9, {names.MAX_REPLICAS: "4"}, "spec.mpiReplicaSpecs.Worker.replicas"),
        (3, {names.PARKED: "0,1,2"}, f"metadata.annotations[{names.PARKED}]"),
        (3, {names.SIZES: "2,4"}, "spec.mpiReplicaSpecs.Worker.replicas"),
    ],
)
def test_nothing_is_warned_of_a_size_that_is_refused(
    replicas: int, annotations: dict[str, str], refused: str, dry_run: bool
) -> None:
    wrong = sized(replicas, command=TWO_TO_FOUR, annotations=annotations)
    before = sized(2, command=TWO_TO_FOUR)
    quota = knowing(before, quotas=[FULL])
    for old in (None, before):
        found = answer(wrong, old, context=quota, dryRun=dry_run).verdict
        assert [one.field for one in found.refusals] == [refused]
        # Whether a LimitRange refuses placeholders does not depend on the size.
        assert [one for one in found.warnings if "LimitRange" not in one] == []

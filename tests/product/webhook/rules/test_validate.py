"""Verdicts on a MPIJob name the field, its value and the allowed values."""

import copy
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, body, mpi_job
from webhook.rules import handlers, review, validate
from webhook.rules.review import LONGEST_WARNING, Verdict


def on_create(job: Object) -> Verdict:
    read = msgspec.convert(job, MPIJob)
    return validate.created(read, job_facts.of(read))


def on_update(job: Object, before: Object) -> Verdict:
    after, earlier = msgspec.convert(job, MPIJob), msgspec.convert(before, MPIJob)
    new, old = job_facts.of(after), job_facts.of(earlier)
    return validate.updated(after, earlier, new=new, old=old)


def annotated(**annotations: str) -> Object:
    """A running elastic job of 3 workers with our annotations, given without prefix and with underscores."""
    named = {f"mpijob-elastic/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return mpi_job(replicas=3, command=ELASTIC, annotations=named, conditions=["Created", "Running"])


def test_a_plain_job_is_let_through_without_a_word() -> None:
    assert on_create(mpi_job(command=PLAIN)) == Verdict()


@pytest.mark.parametrize(
    "annotations",
    [
        {"enabled": "true"},
        {"enabled": "false"},
        {"min_replicas": "1", "max_replicas": "3"},
        {"min_replicas": "3", "max_replicas": "3"},
        {"drain_timeout": "90s", "replace_failed_workers": "false", "delete_without_discovery": "true"},
        {"min_replicas": "9", "enabled": "false"},
    ],
)
def test_good_annotations(annotations: dict[str, str]) -> None:
    assert on_create(annotated(**annotations)) == Verdict()


BAD: list[tuple[dict[str, str], str]] = [
    ({"enabled": "yes"}, 'metadata.annotations[mpijob-elastic/enabled]: "yes" is not allowed; use "true" or "false"'),
    ({"enabled": ""}, 'metadata.annotations[mpijob-elastic/enabled]: "" is not allowed; use "true" or "false"'),
    (
        {"min_replicas": "x"},
        'metadata.annotations[mpijob-elastic/min-replicas]: "x" is not allowed; use a whole number from 1 to 10000',
    ),
    (
        {"suspend": "yes"},
        'metadata.annotations[mpijob-elastic/suspend]: "yes" is not allowed; use "true" or "false"',
    ),
    (
        {"max_replicas": "0"},
        'metadata.annotations[mpijob-elastic/max-replicas]: "0" is not allowed; use a whole number from 1 to 10000',
    ),
    (
        {"drain_timeout": "90"},
        (
            'metadata.annotations[mpijob-elastic/drain-timeout]: "90" is not allowed; use a duration from 0s to 24h, '
            'such as "90s" or "2m30s"'
        ),
    ),
    (
        {"min_replicas": "4", "max_replicas": "2"},
        (
            'metadata.annotations[mpijob-elastic/min-replicas]: "4" is not allowed; use a number not above '
            "mpijob-elastic/max-replicas (2)"
        ),
    ),
    (
        {"max_replicas": "2"},
        (
            "spec.mpiReplicaSpecs.Worker.replicas: 3 is above metadata.annotations[mpijob-elastic/max-replicas] (2); "
            "use 1 to 2, or change the annotation"
        ),
    ),
    (
        {"min_replicas": "4", "max_replicas": "8"},
        (
            "spec.mpiReplicaSpecs.Worker.replicas: 3 is below metadata.annotations[mpijob-elastic/min-replicas] (4); "
            "use 4 to 8, or change the annotation"
        ),
    ),
    (
        {"min_replicas": "4"},
        (
            "spec.mpiReplicaSpecs.Worker.replicas: 3 is below metadata.annotations[mpijob-elastic/min-replicas] (4); "
            "use 4 to 1000, or change the annotation"
        ),
    ),
]


@pytest.mark.parametrize(("annotations", "message"), BAD)
def test_refused_at_creation_and_when_brought_in_by_an_update(annotations: dict[str, str], message: str) -> None:
    for verdict in (on_create(annotated(**annotations)), on_update(annotated(**annotations), annotated())):
        assert [str(refusal) for refusal in verdict.refusals] == [message]
        assert not verdict.allowed


def test_a_bad_run_policy_is_refused_once_the_job_asks_for_it() -> None:
    asks, silent = annotated(run_policy="true"), annotated()
    for job in (asks, silent):
        job["spec"]["runPolicy"] = {"activeDeadlineSeconds": "1h"}
    for verdict in (on_create(asks), on_update(asks, silent), on_update(asks, annotated(run_policy="true"))):
        [refusal] = verdict.refusals
        assert refusal.field == "spec.runPolicy.activeDeadlineSeconds"
        assert refusal.message == '"1h" is not allowed; use a whole number from 1 to 2147483647'
    for verdict in (on_create(silent), on_update(asks, asks), on_update(silent, asks)):
        assert verdict.allowed


@pytest.mark.parametrize(("annotations", "_message"), BAD)
def test_what_was_bad_before_never_blocks_another_change(annotations: dict[str, str], _message: str) -> None:
    before = annotated(**annotations)
    for field, value in (("labels", {"team": "a"}), ("finalizers", ["x/y"])):
        after = copy.deepcopy(before)
        after["metadata"][field] = value
        assert on_update(after, before) == Verdict()
    after = copy.deepcopy(before)
    after["metadata"]["annotations"]["mpijob-elastic/status"] = "draining"
    after["status"] = {"conditions": []}
    assert on_update(after, before) == Verdict()


@pytest.mark.parametrize(("annotations", "_message"), BAD)
@pytest.mark.parametrize("end", ["deleting", "Succeeded", "Failed"])
def test_a_job_that_is_over_is_never_blocked(annotations: dict[str, str], _message: str, end: str) -> None:
    before, after = annotated(), annotated(**annotations)
    for job in (before, after):
        if end == "deleting":
            job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            job["status"]["conditions"].append({"type": end, "status": "True"})
            job["status"]["completionTime"] = "2026-01-01T00:00:00Z"
    assert on_update(after, before) == Verdict()


@pytest.mark.parametrize("completed", [True, False])
def test_an_evicted_job_goes_on_so_its_edits_are_checked(completed: bool) -> None:
    """[operator] It recreates the launcher of such a job."""
    before, after = annotated(), annotated(min_replicas="4")
    for job in (before, after):
        reason = "MPIJobEvicted" if completed else "MPIJobFailed"
        job["status"]["conditions"].append({"type": "Failed", "status": "True", "reason": reason})
        job["status"] |= {"completionTime": "2026-01-01T00:00:00Z"} if completed else {}
    assert not on_update(after, before).allowed


def test_several_problems_are_all_named() -> None:
    verdict = on_create(annotated(enabled="maybe", drain_timeout="soon"))
    assert [refusal.field for refusal in verdict.refusals] == [
        "metadata.annotations[mpijob-elastic/enabled]",
        "metadata.annotations[mpijob-elastic/drain-timeout]",
    ]


def sized(replicas: int, **facts: Any) -> Object:
    return mpi_job(replicas=replicas, **{"command": ELASTIC, "conditions": ["Created", "Running"], **facts})


MAX = "mpijob-elastic/max-replicas"
SWITCHED_OFF = {"mpijob-elastic/enabled": "false"}
WIDE = [*ELASTIC[:1], "--max-np", "801", *ELASTIC[1:]]
WITHOUT = f"the largest size without metadata.annotations[{MAX}]; use 1 to"
LARGEST = [
    ({}, 1_000, f"1001 is above 1000, {WITHOUT} 1000, or set the annotation"),
    ({"command": WIDE, "slots": 8}, 1_010, f"1011 is above 1010, {WITHOUT} 1010, or set the annotation"),
    ({"command": WIDE}, 8_010, f"8011 is above 8010, {WITHOUT} 8010, or set the annotation"),
    ({"command": [*WIDE[:2], "1001", *WIDE[3:]]}, 10_000, "10001 is above 10000, the largest size; use 1 to 10000"),
    ({"command": ["mpirun", "x"]}, 10_000, "10001 is above 10000, the largest size; use 1 to 10000"),
    ({"annotations": SWITCHED_OFF}, 10_000, "10001 is above 10000, the largest size; use 1 to 10000"),
    ({"annotations": {MAX: "10000"}}, 10_000, "10001 is above 10000, the largest size; use 1 to 10000"),
    (
        {"annotations": {"mpijob-elastic/min-replicas": "1200"}},
        1_200,
        f"1201 is above 1200, {WITHOUT.replace('use 1', 'use 1200')} 1200, or set the annotation",
    ),
]


@pytest.mark.parametrize(("facts", "largest", "message"), LARGEST)
def test_a_size_that_must_be_a_typing_error_is_refused(facts: dict[str, Any], largest: int, message: str) -> None:
    small, fits, over = (sized(replicas, **facts) for replicas in (largest - 1, largest, largest + 1))
    for verdict in (on_create(fits), on_update(fits, small)):
        assert verdict.allowed
    for verdict in (on_create(over), on_update(over, fits)):
        [refusal] = verdict.refusals
        assert (refusal.field, refusal.message) == (validate.REPLICAS_FIELD, message)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (sized(4, annotations={MAX: "2"}), sized(5, annotations={MAX: "2"}), False),
        (sized(4, annotations={MAX: "2"}), sized(3, annotations={MAX: "2"}), True),
        (sized(5_000), sized(4_000), True),
        (sized(5), sized(-1), True),
        (sized(5_000), sized(5_000, slots=2), True),
        (sized(5_000), sized(5_000, annotations={MAX: "5000"}), True),
        (sized(5_000), sized(5_000, annotations={MAX: "4999"}), True),
        (sized(5_000, annotations={MAX: "5000"}), sized(5_000), False),
        (sized(1_200, command=["mpirun", "x"]), sized(1_200), False),
    ],
)
def test_only_what_goes_further_out_of_bounds_is_refused(before: Object, after: Object, *, allowed: bool) -> None:
    assert on_update(after, before).allowed is allowed


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mpijob-elastic/min-replica", "mpijob-elastic/min-replicas"),
        ("mpijob-elastic/maxReplicas", "mpijob-elastic/max-replicas"),
        ("mpijob-elastic/drain_timeout", "mpijob-elastic/drain-timeout"),
    ],
)
def test_an_unknown_annotation_is_warned_of_once_with_the_nearest_name(written: str, meant: str) -> None:
    job = mpi_job(annotations={written: "1", "example.com/enable": "x"})
    warning = f"metadata.annotations[{written}] is not known and has no effect; did you mean {meant}?"
    assert on_create(job) == Verdict(warnings=(warning,))
    assert on_update(job, mpi_job()) == Verdict(warnings=(warning,))
    assert on_update(job, job) == Verdict()


def running(**fields: Any) -> Object:
    return mpi_job(**{"command": PLAIN, **fields}, conditions=["Created", "Running"])


def test_shrinking_a_job_that_is_not_elastic_is_warned_of() -> None:
    (warning,) = on_update(running(replicas=1), running(replicas=3)).warnings
    assert "spec.mpiReplicaSpecs.Worker.replicas 3 to 1: this job is not elastic" in warning
    assert "--host-discovery-script /etc/mpi/discover_hosts.sh" in warning
    assert "in a new launcher" in warning
    assert len(warning) <= LONGEST_WARNING


@pytest.mark.parametrize(
    ("edit", "before", "told"),
    [
        ({"annotations": {names.ENABLED: "true"}}, {}, True),
        ({"command": ELASTIC}, {}, True),
        # The launcher that runs reads the list, and does so again.
        ({"command": ELASTIC}, {"command": ELASTIC, "annotations": {names.ENABLED: "false"}}, False),
        ({"command": ELASTIC, "replicas": 3}, {"command": ELASTIC}, False),
        ({"replicas": 3}, {}, False),
    ],
)
def test_a_job_that_becomes_elastic_needs_a_new_launcher(edit: Object, before: Object, told: bool) -> None:
    warnings = on_update(running(**edit), running(**before)).warnings
    new = [warning for warning in warnings if "becomes elastic with a new launcher" in warning]
    assert bool(new) is told
    adopt = "`mpijob-elastic upgrade adopt train -n default`"
    assert all(adopt in warning and "last checkpoint" in warning and len(warning) <= LONGEST_WARNING for warning in new)
    assert on_update(mpi_job(**{"command": PLAIN, **edit}), mpi_job(**{"command": PLAIN, **before})).warnings == tuple(
        warning for warning in warnings if warning not in new and "Worker.replicas" not in warning
    )


@pytest.mark.parametrize(
    ("job", "before"),
    [
        (running(replicas=1, command=ELASTIC), running(replicas=3, command=ELASTIC)),
        (running(replicas=3), running(replicas=1)),
        (mpi_job(replicas=1), mpi_job(replicas=3)),
        (running(replicas=1), mpi_job(replicas=3, conditions=["Created", "Succeeded"])),
    ],
    ids=["elastic", "grows", "not started", "finished"],
)
def test_no_warning(job: Object, before: Object) -> None:
    assert on_update(job, before) == Verdict()


def queued(queue: str = "", *, command: list[str] = ELASTIC, conditions: tuple[str, ...] = ("Running",)) -> Object:
    """A job with this label, and a least size of its own for each."""
    annotations = {names.MIN_REPLICAS: "2" if queue == "team" else "1"}
    job = mpi_job(replicas=3, command=command, conditions=[*conditions], annotations=annotations)
    job["spec"]["cleanPodPolicy"] = "Running"
    return {**job, "metadata": {**job["metadata"], "labels": {names.LABEL_QUEUE: queue} if queue else {}}}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("team", "other", "an admitted job keeps its quota of team; to move it, suspend and resume it"),
        ("team", "", "the job leaves its queue: others get its quota at once, and its pods go on"),
        ("", "team", "pods that run go on outside the quota until Kueue admits the job"),
    ],
)
def test_a_queue_that_changes_is_warned_of(before: str, after: str, told: str) -> None:
    assert on_update(queued(after), queued(before)).warnings == (f"metadata.labels[{names.LABEL_QUEUE}]: {told}",)
    waiting = [queued(name, conditions=()) for name in (after, before)]
    assert on_update(*waiting) == Verdict()


def test_a_least_size_that_changes_in_a_queue_is_warned_of() -> None:
    before, after = queued("team"), queued("team")
    after["metadata"]["annotations"] = {names.MIN_REPLICAS: "3"}
    [warning] = on_update(after, before).warnings
    assert warning == (
        "mpijob-elastic/min-replicas: an admitted job keeps the quota of its least size at the start; to ask again, "
        "suspend and resume it"
    )
    for job in (before, after):
        job["metadata"]["labels"] = {}
    assert on_update(after, before) == Verdict()


def test_changed_slots_of_a_running_job_are_warned_of() -> None:
    (warning,) = on_update(running(slots=2), running(slots=1)).warnings
    assert warning.startswith("spec.slotsPerWorker 1 to 2: the running job keeps 1")
    assert len(warning) <= LONGEST_WARNING
    assert on_update(mpi_job(slots=2), mpi_job(slots=1)) == Verdict()


def test_of_many_unknown_annotations_a_few_are_named() -> None:
    verdict = on_create(annotated(**{f"x{number:05}": "" for number in range(11_000)}))
    assert [warning.partition("]")[0][-5:] for warning in verdict.warnings] == [f"{n:05}" for n in range(5)]


def test_any_size_is_shown() -> None:
    job, before = (of_size(replicas) for replicas in (2**31 - 1, 3))
    for old, new in ((job, before), (before, job)):
        request = review.parse(body(new, old=old, dryRun=True))
        answered = handlers.answer(request, handlers.validating(handlers.NOTHING))
        assert any("would scale" in warning for warning in answered.verdict.warnings)


def of_size(replicas: int) -> Object:
    return mpi_job(replicas=replicas, conditions=["Created"], command=ELASTIC)


BOUNDED = {names.MIN_REPLICAS: "1", names.MAX_REPLICAS: "8"}


@pytest.mark.parametrize("asking", [{names.SUSPEND: "true"}, {names.AUTOSCALE: "cpu=70", **BOUNDED}])
def test_a_plain_job_is_told_once_what_has_no_effect(asking: dict[str, str]) -> None:
    plain = mpi_job(command=PLAIN, conditions=["Created"])
    asked = mpi_job(command=PLAIN, annotations=asking, conditions=["Created"])
    told = f"{next(iter(asking))} has no effect: this job is not elastic"
    assert told in on_create(asked).warnings
    assert told in on_update(asked, plain).warnings
    assert told not in on_update(asked, asked).warnings
    assert told not in on_create(mpi_job(command=ELASTIC, annotations=asking)).warnings


def test_an_hpa_needs_both_bounds() -> None:
    asking = mpi_job(command=ELASTIC, annotations={names.AUTOSCALE: "cpu=70", names.MIN_REPLICAS: "1"})
    (refusal,) = on_create(asking).refusals
    assert refusal.field == "metadata.annotations[mpijob-elastic/autoscale]"
    assert "use it beside mpijob-elastic/min-replicas and mpijob-elastic/max-replicas" in refusal.message

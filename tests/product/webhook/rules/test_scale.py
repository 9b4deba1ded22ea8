"""Verdicts on a scale: bounds and their source, the job's end, horovodrun's limits, what a dry run shows."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, Object, body, mpi_job
from webhook.rules import handlers, review, scale
from webhook.rules.handlers import NOTHING, Answer

ADVICE = "use 2 to 5, or change the annotation"
LIMITED = ["horovodrun", "-np", "4", "--min-np", "2", "--max-np", "4", *ELASTIC[1:]]


def job(**facts: Any) -> Object:
    """A running elastic job of 3 workers."""
    facts = {"replicas": 3, "command": ELASTIC, "conditions": ["Created", "Running"], **facts}
    made = mpi_job(**facts)
    made["metadata"]["resourceVersion"] = "1"
    return made


def scale_of(replicas: int, *, uid: str = "5f1b") -> Object:
    metadata = {"name": "train", "namespace": "default", "uid": uid}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}


def answered(behind: Object | None, replicas: int, *, before: int = 3, uid: str = "5f1b", **request: Any) -> Answer:
    known = {("default", "train"): job_facts.read(json.dumps(behind).encode())} if behind else {}
    sent = body(scale_of(replicas, uid=uid), old=scale_of(before, uid=uid), subResource="scale", **request)
    table = handlers.validating(replace(NOTHING, job=lambda namespace, name: known.get((namespace, name))))
    return handlers.answer(review.parse(sent), table)


def message(answer: Answer) -> str:
    return "; ".join(str(refusal) for refusal in answer.verdict.refusals)


def bounded(low: str, high: str, **more: str) -> Object:
    return job(annotations={names.MIN_REPLICAS: low, names.MAX_REPLICAS: high, **more})


@pytest.mark.parametrize("replicas", [2, 4, 5])
def test_within_the_bounds_nothing_is_said(replicas: int) -> None:
    assert answered(bounded("2", "5"), replicas).outcome == "unchanged"


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        (
            6,
            "spec.replicas: 6 is above metadata.annotations[mpijob-elastic/max-replicas] (5); " + ADVICE,
        ),
        (
            1,
            "spec.replicas: 1 is below metadata.annotations[mpijob-elastic/min-replicas] (2); " + ADVICE,
        ),
        (0, "spec.replicas: 0 is below 1, the smallest size that mpi-operator accepts; delete the job to stop it"),
    ],
)
def test_out_of_bounds_is_refused_with_the_bound_and_its_source(replicas: int, text: str) -> None:
    assert message(answered(bounded("2", "5"), replicas)) == text
    assert message(answered(bounded("2", "5"), replicas, dryRun=True)) == text


def test_without_an_annotation_a_size_that_must_be_a_typing_error_is_refused() -> None:
    key = "metadata.annotations[mpijob-elastic/max-replicas]"
    said = "is above 1000, the largest size without"
    assert message(answered(job(), 2_000)) == (
        f"spec.replicas: 2000 {said} {key}; use 1 to 1000, or set the annotation"
    )
    assert answered(job(), 1_000).verdict.allowed
    assert answered(job(), 10_000, before=20_000).verdict.allowed


def test_a_finished_job_keeps_its_size() -> None:
    over = job(conditions=["Created", "Succeeded"])
    assert "the job has finished" in message(answered(over, 4))
    assert answered(over, 3).outcome == "unchanged"


def test_one_that_is_being_deleted_is_nobodys_business() -> None:
    going = bounded("2", "5")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert answered(going, 9).outcome == "unchanged"


def test_bounds_that_are_switched_off_hold_nobody() -> None:
    assert answered(bounded("2", "5", **{names.ENABLED: "false"}), 6).outcome == "unchanged"


@pytest.mark.parametrize(("behind", "uid"), [(None, "5f1b"), (bounded("2", "5"), "of the next of that name")])
def test_a_job_that_is_not_known_is_let_through_with_a_warning(behind: Object | None, uid: str) -> None:
    answer = answered(behind, 9, uid=uid)
    assert answer.verdict.allowed
    assert answer.verdict.warnings == (scale.UNKNOWN,)


@pytest.mark.parametrize(
    ("facts", "replicas", "warnings"),
    [
        ({"command": LIMITED}, 4, ()),
        ({"command": LIMITED}, 6, ("horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused",)),
        ({"command": LIMITED, "slots": 2}, 1, ()),
        ({"command": LIMITED}, 1, ("horovodrun's --min-np is 2, but 1 slots are asked for: training waits for more",)),
        ({"command": ["mpirun", "x"]}, 1, ("this job is not elastic, so its surplus workers keep running",)),
        ({"command": ["mpirun", "x"], "conditions": None}, 1, ()),
    ],
)
def test_what_is_allowed_but_doubtful(facts: dict[str, Any], replicas: int, warnings: tuple[str, ...]) -> None:
    assert answered(job(**facts), replicas).verdict.warnings == warnings


@pytest.mark.parametrize(
    ("facts", "replicas", "shown"),
    [
        ({}, 1, "would scale 3→1: worker-2, worker-1 drain for at most 1m, then are deleted"),
        (
            {"annotations": {names.DRAIN_TIMEOUT: "90s"}},
            2,
            "would scale 3→2: worker-2 drains for at most 1m30s, then is deleted",
        ),
        ({}, 5, "would scale 3→5: worker-3, worker-4 are created, and published once Ready"),
        ({}, 4, "would scale 3→4: worker-3 is created, and published once Ready"),
        ({}, 9, "would scale 3→9: worker-3, worker-4, worker-5 and 3 more are created, and published once Ready"),
        ({"conditions": None}, 1, "would scale 3→1 before the job starts"),
        (
            {"command": ["mpirun", "x"]},
            1,
            "would scale 3→1: worker-2, worker-1 keep running, because the job is not elastic",
        ),
        ({"command": ["mpirun", "x"]}, 4, "would scale 3→4: worker-3 starts unused, because the job is not elastic"),
    ],
)
def test_a_dry_run_shows_what_would_happen(facts: dict[str, Any], replicas: int, shown: str) -> None:
    assert answered(job(**facts), replicas, dryRun=True).verdict.warnings == (shown,)
    assert len(shown) <= 120


def test_only_updates_of_scales_are_judged() -> None:
    known = job_facts.read(json.dumps(bounded("2", "5")).encode())
    table = handlers.validating(replace(NOTHING, job=lambda _namespace, _name: known))
    for sent in (
        body(scale_of(9), subResource="scale"),
        body(scale_of(9), old=scale_of(3)),
        body(scale_of(9), old=scale_of(3), subResource="status"),
    ):
        assert handlers.answer(review.parse(sent), table).outcome == "unchanged"

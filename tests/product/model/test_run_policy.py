"""The run policy of a MPIJob: what is read of it, and what is said of a value that means nothing."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts, run_policy
from mpijob_elastic.model.run_policy import RunPolicy

MOST = 2**31 - 1
ACTIVE = "activeDeadlineSeconds"
TTL = "ttlSecondsAfterFinished"
LIMIT = "backoffLimit"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, RunPolicy()),
        ({}, RunPolicy()),
        ({ACTIVE: None, "schedulingPolicy": {"minAvailable": "x"}}, RunPolicy()),
        ({ACTIVE: 1}, RunPolicy(active_deadline=1)),
        ({ACTIVE: 1, "suspend": True}, RunPolicy(active_deadline=1, suspend=True)),
        ({"suspend": False}, RunPolicy()),
        ({ACTIVE: MOST}, RunPolicy(active_deadline=MOST)),
        ({ACTIVE: 60, TTL: 0, LIMIT: 6}, RunPolicy(active_deadline=60, ttl=0, backoff_limit=6)),
    ],
)
def test_good_values(given: object, expected: RunPolicy) -> None:
    assert run_policy.parse(given) == (expected, [])


@pytest.mark.parametrize(
    ("field", "value", "least"),
    [
        (ACTIVE, 0, 1),
        (ACTIVE, -1, 1),
        (ACTIVE, MOST + 1, 1),
        (ACTIVE, "1h", 1),
        (ACTIVE, "60", 1),
        (ACTIVE, 60.0, 1),
        (ACTIVE, True, 1),
        (ACTIVE, [60], 1),
        (LIMIT, -1, 0),
        (LIMIT, "3", 0),
        (TTL, -1, 0),
        (TTL, "1h", 0),
        (TTL, False, 0),
    ],
)
def test_a_bad_value_is_left_out_and_named(field: str, value: object, least: int) -> None:
    read, [problem] = run_policy.parse({field: value})
    assert read == RunPolicy()
    assert str(problem) == (
        f'spec.runPolicy.{field}: "{value}" is not allowed; use a whole number from {least} to {MOST}'
    )


@pytest.mark.parametrize("value", ["true", 1, []])
def test_a_job_is_suspended_by_true_only(value: object) -> None:
    read, [problem] = run_policy.parse({"suspend": value})
    assert read == RunPolicy()
    assert str(problem) == f'spec.runPolicy.suspend: "{value}" is not allowed; use true or false'


def test_a_run_policy_that_nobody_asked_for_is_named_where_it_would_matter() -> None:
    assert run_policy.ignored({ACTIVE: 1, "suspend": True, "x": 1}) == [ACTIVE, "suspend"]
    assert run_policy.ignored({"suspend": False}) == []


@pytest.mark.parametrize("given", ["", "x", 3, [1]])
def test_a_run_policy_that_is_no_object(given: object) -> None:
    read, [problem] = run_policy.parse(given)
    assert (read, problem.field) == (RunPolicy(), "spec.runPolicy")
    assert run_policy.ignored(given) == []


def facts(asked: str | None, policy: object, own: int | None = None) -> job_facts.JobFacts:
    job: dict[str, Any] = {"metadata": {"name": "j", "namespace": "n"}, "spec": {"runPolicy": policy}}
    if asked is not None:
        job["metadata"]["annotations"] = {names.RUN_POLICY: asked}
    if own is not None:
        job["spec"]["mpiReplicaSpecs"] = {"Launcher": {"template": {"spec": {ACTIVE: own}}}}
    return job_facts.read(msgspec.json.encode(job))


@pytest.mark.parametrize("asked", [None, "false", "yes"])
def test_a_job_that_does_not_ask_has_none_whatever_it_says(asked: str | None) -> None:
    assert facts(asked, {ACTIVE: 60}).run_policy == RunPolicy()
    assert [problem.field for problem in facts(asked, "x").problems if "runPolicy" in problem.field] == []


def test_a_bad_value_is_a_problem_of_the_job() -> None:
    [problem] = facts("true", {ACTIVE: "1h"}).problems
    assert problem.field == f"spec.runPolicy.{ACTIVE}"

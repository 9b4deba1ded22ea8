"""What the annotations and the run policy of an MPIJob mean, and what is said of a value that means nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities import run_policy
from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, Autoscale, Scaling
from mpijob_elastic.capabilities.run_policy import RUN_POLICY, RunPolicy
from mpijob_elastic.model import job_facts, policy
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.names import SUSPEND

DEFAULTS = Policy()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (names.ENABLED, "true", Policy(enabled=True)),
        (names.ENABLED, "false", Policy(enabled=False)),
        (names.MIN_REPLICAS, "1", Policy(min_replicas=1)),
        (names.MAX_REPLICAS, "10000", Policy(max_replicas=10_000)),
        (names.DRAIN_TIMEOUT, "0s", Policy(drain_timeout=0.0)),
        (names.DRAIN_TIMEOUT, "24h", Policy(drain_timeout=86_400.0)),
        (names.REPLACE_FAILED_WORKERS, "false", Policy(replace_failed_workers=False)),
        ("somebody.else/enabled", "perhaps", DEFAULTS),
    ],
)
def test_an_annotation_sets_its_part_of_the_policy(key: str, value: str, expected: Policy) -> None:
    assert policy.parse({key: value}) == (expected, [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (names.ENABLED, "True"),
        (names.ENABLED, ""),
        (names.MIN_REPLICAS, "0"),
        (names.MIN_REPLICAS, "1.0"),
        (names.MIN_REPLICAS, "٣"),
        (names.MAX_REPLICAS, "10001"),
        (names.MAX_REPLICAS, "9" * 5000),
        (names.DRAIN_TIMEOUT, "60"),
        (names.DRAIN_TIMEOUT, "86401s"),
        (names.REPLACE_FAILED_WORKERS, "no"),
        (RUN_POLICY, "enforce"),
        (SUSPEND, "yes"),
    ],
)
def test_a_bad_value_leaves_the_default_and_is_named(key: str, value: str) -> None:
    job = capabilities.read(
        msgspec.json.encode({"metadata": {"name": "j", "annotations": {key: value}}})
    )
    [problem] = job.problems
    assert (job.policy, job.asked) == (DEFAULTS, ())
    assert (problem.field, problem.value) == (f"metadata.annotations[{key}]", value[:64])
    assert f'{problem.field}: "{problem.value}" is not allowed; use {problem.allowed}' == str(
        problem
    )


def test_a_minimum_above_the_maximum_is_dropped_with_it() -> None:
    parsed, [problem] = policy.parse({names.MIN_REPLICAS: "4", names.MAX_REPLICAS: "3"})
    assert parsed == DEFAULTS
    assert (names.MIN_REPLICAS in problem.field, "3" in problem.allowed) == (True, True)


@given(st.dictionaries(st.sampled_from(sorted(policy.KEYS)) | st.text(), st.text()))
def test_no_text_is_too_strange_and_every_problem_names_field_value_and_what_is_allowed(
    given: dict[str, str],
) -> None:
    parsed, problems = policy.parse(given)
    assert 0.0 <= parsed.drain_timeout <= policy.LONGEST_DRAIN_TIMEOUT
    for problem in problems:
        key = problem.field.removeprefix("metadata.annotations[").removesuffix("]")
        assert key in policy.KEYS
        assert given[key].startswith(problem.value)
        assert problem.allowed


MOST = 2**31 - 1
ACTIVE = "activeDeadlineSeconds"
TTL = "ttlSecondsAfterFinished"
LIMIT = "backoffLimit"
SPOILED: list[object] = [0, MOST + 1, "60", 60.0, True, [60]]
NO_COUNTS: list[object] = [-1, "3", False]
NO_SWITCHES: list[object] = ["true", 1, []]
WHOLE = f"a whole number from {{}} to {MOST}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, RunPolicy()),
        ({ACTIVE: None, "schedulingPolicy": {"minAvailable": "x"}}, RunPolicy()),
        ({ACTIVE: 1, "suspend": True}, RunPolicy(active_deadline=1, suspend=True)),
        ({"suspend": False}, RunPolicy()),
        ({ACTIVE: MOST}, RunPolicy(active_deadline=MOST)),
        ({ACTIVE: 60, TTL: 0, LIMIT: 6}, RunPolicy(active_deadline=60, ttl=0, backoff_limit=6)),
    ],
)
def test_good_values(given: object, expected: RunPolicy) -> None:
    assert run_policy.parse(given) == (expected, [])


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        *((ACTIVE, value, WHOLE.format(1)) for value in SPOILED),
        *((field, value, WHOLE.format(0)) for field in (LIMIT, TTL) for value in NO_COUNTS),
        *(("suspend", value, "true or false") for value in NO_SWITCHES),
    ],
)
def test_a_bad_value_is_left_out_and_named(field: str, value: object, allowed: str) -> None:
    read, [problem] = run_policy.parse({field: value})
    assert read == RunPolicy()
    assert str(problem) == f'spec.runPolicy.{field}: "{value}" is not allowed; use {allowed}'


def test_a_run_policy_that_nobody_asked_for_is_named_where_it_would_matter() -> None:
    assert run_policy.ignored({ACTIVE: 1, "suspend": True, "x": 1}) == [ACTIVE, "suspend"]
    assert run_policy.ignored({"suspend": False}) == []


@pytest.mark.parametrize("given", ["", "x", 3, [1]])
def test_a_run_policy_that_is_no_object(given: object) -> None:
    read, [problem] = run_policy.parse(given)
    assert (read, problem.field) == (RunPolicy(), "spec.runPolicy")
    assert run_policy.ignored(given) == []


def facts(asked: str, policy: object) -> job_facts.JobFacts:
    metadata = {"name": "j", "namespace": "n", "annotations": {RUN_POLICY: asked}}
    return capabilities.read(
        msgspec.json.encode({"metadata": metadata, "spec": {"runPolicy": policy}})
    )


def test_a_run_policy_and_its_problems_are_those_of_a_job_that_asks_for_it() -> None:
    for asked in ("false", "yes"):
        assert facts(asked, {ACTIVE: 60}).of(RunPolicy) is None
        assert not any("runPolicy" in problem.field for problem in facts(asked, "x").problems)
    [problem] = facts("true", {ACTIVE: "1h"}).problems
    assert problem.field == f"spec.runPolicy.{ACTIVE}"


BOUNDS = {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "8"}
QUEUE = Autoscale(name="s0:queue", labels={"a": "1", "b/c": "d"}, value=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu=70", Autoscale(value=70)),
        ("external:queue_length=30", Autoscale(name="queue_length", value=30)),
        ("external:s0:queue{a=1,b/c=d}=30", QUEUE),
    ],
)
def test_it_reads(text: str, expected: Autoscale) -> None:
    assert autoscale.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "cpu",
            "cpu=0",
            "cpu=70%",
            "cpu=\uff17",
            "memory=70",
            "cpu=70,cpu=80",
            "external:=1",
            "external:q",
        ),
        *(
            "external:q=0",
            "external:q{}=1",
            "external:q{a}=1",
            "external:q{a=1=1",
            "external:q=1\n",
            "external:q/..=1",
        ),
    ],
)
def test_it_does_not_read(text: str) -> None:
    assert autoscale.parse(text) is None


def scaled(annotations: dict[str, str]) -> tuple[Autoscale | None, tuple[Problem, ...]]:
    """What a job is scaled by, and what is wrong with its annotations."""
    job = capabilities.read(
        msgspec.json.encode({"metadata": {"name": "j", "annotations": annotations}})
    )
    return (job.of(Scaling) or Scaling()).autoscale, job.problems


def test_both_bounds_are_needed() -> None:
    asked = {AUTOSCALE: "cpu=70"}
    found, problems = scaled(asked | BOUNDS)
    assert (found, problems) == (Autoscale(value=70), ())
    for bounds in (
        {},
        {names.MIN_REPLICAS: "2"},
        {names.MAX_REPLICAS: "8"},
        {**BOUNDS, names.MIN_REPLICAS: "9"},
    ):
        found, problems = scaled(asked | bounds)
        assert found is None
        assert str(problems[-1]) == (
            'metadata.annotations[mpijob-elastic/autoscale]: "cpu=70" is not allowed; use it beside '
            "mpijob-elastic/min-replicas and mpijob-elastic/max-replicas, the bounds of the size"
        )


def test_the_spec_of_an_external_metric() -> None:
    found = autoscale.spec(QUEUE, "j", least=2, most=8, paused=False)
    assert (found["minReplicas"], found["maxReplicas"]) == (2, 8)
    assert found["scaleTargetRef"] == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": "j",
    }
    metric = {"name": "s0:queue", "selector": {"matchLabels": {"a": "1", "b/c": "d"}}}
    assert found["metrics"][0]["external"]["metric"] == metric
    paused = autoscale.spec(QUEUE, "j", least=2, most=8, paused=True)["behavior"]
    assert [paused[way]["selectPolicy"] for way in ("scaleUp", "scaleDown")] == ["Disabled"] * 2

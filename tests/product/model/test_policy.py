"""The annotations of a MPIJob: what they mean, and what is said of one that means nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.policy import Policy

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
        (names.DELETE_UNSEEN, "true", Policy(delete_without_discovery=True)),
        (names.RUN_POLICY, "true", Policy(run_policy=True)),
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
        (names.ENABLED, "yes"),
        (names.MIN_REPLICAS, "0"),
        (names.MIN_REPLICAS, "-1"),
        (names.MIN_REPLICAS, "1.0"),
        (names.MIN_REPLICAS, "٣"),
        (names.MAX_REPLICAS, "100001"),
        (names.MAX_REPLICAS, "9" * 5000),
        (names.DRAIN_TIMEOUT, "60"),
        (names.DRAIN_TIMEOUT, "25h"),
        (names.REPLACE_FAILED_WORKERS, "no"),
        (names.DELETE_UNSEEN, "1"),
        (names.RUN_POLICY, "enforce"),
    ],
)
def test_a_bad_value_leaves_the_default_and_is_named(key: str, value: str) -> None:
    parsed, problems = policy.parse({key: value})
    assert parsed == DEFAULTS
    (problem,) = problems
    assert problem.field == f"metadata.annotations[{key}]"
    assert problem.value == value[:64]
    assert f'{problem.field}: "{problem.value}" is not allowed; use {problem.allowed}' == str(problem)


def test_a_minimum_above_the_maximum_is_dropped_with_it() -> None:
    parsed, problems = policy.parse({names.MIN_REPLICAS: "4", names.MAX_REPLICAS: "3"})
    assert parsed == DEFAULTS
    (problem,) = problems
    assert names.MIN_REPLICAS in problem.field
    assert "3" in problem.allowed


@given(st.dictionaries(st.sampled_from(sorted(names.USER_ANNOTATIONS)) | st.text(), st.text()))
def test_no_text_is_too_strange_and_every_problem_names_field_value_and_what_is_allowed(given: dict[str, str]) -> None:
    parsed, problems = policy.parse(given)
    assert 0.0 <= parsed.drain_timeout <= policy.LONGEST_DRAIN_TIMEOUT
    for problem in problems:
        key = problem.field.removeprefix("metadata.annotations[").removesuffix("]")
        assert key in names.USER_ANNOTATIONS
        assert given[key].startswith(problem.value)
        assert problem.allowed

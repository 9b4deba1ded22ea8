"""PodDisruptionBudgets: which pods they select, and when pods that only hold their place block every eviction."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.kube import meta
from mpijob_elastic.model import budgets
from mpijob_elastic.model.budgets import LONGEST, MOST, BudgetFacts
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import FACTS, JOB, but, job, launcher, pending

OF_WORKERS = {"matchLabels": {names.LABEL_JOB_NAME: JOB, names.LABEL_JOB_ROLE: names.ROLE_WORKER}}
OF_JOB = {"matchLabels": {names.LABEL_JOB_NAME: JOB}}
EVERY: dict[str, Any] = {}


def budget(*, selector: object = OF_WORKERS, allowed: int = 0, **spec: object) -> BudgetFacts:
    made = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": selector, **spec},
        "status": {"disruptionsAllowed": allowed},
    }
    return budgets.read(json.dumps(made).encode())


def expression(operator: str, *values: str, key: str = "a") -> object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "labels", "is_selected"),
    [
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True, id="the same"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="another value"),
        pytest.param({"matchLabels": {"a": "1"}}, {}, False, id="no such label"),
        pytest.param(expression("In", "1", "2"), {"a": "2"}, True, id="one of them"),
        pytest.param(expression("In", "1"), {}, False, id="none of them"),
        pytest.param(expression("NotIn", "1"), {"a": "1"}, False, id="a forbidden value"),
        pytest.param(expression("NotIn", "1"), {}, True, id="absent is not forbidden"),
        pytest.param(expression("Exists"), {"a": ""}, True, id="there"),
        pytest.param(expression("Exists"), {}, False, id="not there"),
        pytest.param(expression("DoesNotExist"), {"a": ""}, False, id="there, and must not be"),
        pytest.param(expression("DoesNotExist"), {}, True, id="not there, as it must be"),
        pytest.param(expression("Like", "1"), {"a": "1"}, False, id="no known operator"),
        pytest.param(EVERY, {}, True, id="an empty selector selects every pod"),
        pytest.param(None, {}, False, id="no selector selects none"),
    ],
)
def test_a_budget_selects_by_labels(
    selector: object, labels: dict[str, str], is_selected: bool
) -> None:
    assert budget(selector=selector).selects(labels) is is_selected


@pytest.mark.parametrize(
    ("spec", "ready", "is_blocked"),
    [
        # Four workers, of which so many run.
        pytest.param({"maxUnavailable": 1}, 4, False, id="all run"),
        pytest.param({"maxUnavailable": 1}, 3, True, id="one is unavailable, as one may be"),
        pytest.param({"maxUnavailable": 2}, 3, False, id="two may be"),
        pytest.param({"maxUnavailable": 2}, 2, True, id="two are"),
        pytest.param({"maxUnavailable": "25%"}, 3, True, id="a quarter is one"),
        pytest.param({"maxUnavailable": "26%"}, 3, False, id="a percentage is rounded up"),
        pytest.param({"minAvailable": "75%"}, 3, True, id="three quarters are three"),
        pytest.param({"minAvailable": "50%"}, 3, False, id="a half is two"),
        pytest.param({"minAvailable": 2}, 3, False, id="a number expects nothing"),
        pytest.param({"minAvailable": 3}, 3, True, id="a number that is too large now"),
        pytest.param({"minAvailable": 4}, 3, False, id="a number that always was too large"),
        pytest.param({"maxUnavailable": 0}, 3, False, id="never an eviction"),
        pytest.param({"minAvailable": "x%"}, 3, False, id="no percentage"),
        pytest.param({}, 3, False, id="no limit"),
        pytest.param({"maxUnavailable": 1, "selector": OF_JOB}, 3, False, id="a launcher beside"),
        pytest.param(
            {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "1"}}}, 3, False, id="others"
        ),
    ],
)
def test_a_budget_blocks_once_too_few_run(
    spec: dict[str, Any], ready: int, is_blocked: bool
) -> None:
    four = but(FACTS, replicas=4)
    assert budgets.blocks(budget(**spec), four, ready=ready) is is_blocked


def test_labels_of_the_template_count() -> None:
    labelled = but(FACTS, replicas=4, pod_labels={"launcher": {}, "worker": {"team": "a"}})
    found = budget(selector={"matchLabels": {"team": "a"}}, maxUnavailable=1)
    assert budgets.blocks(found, labelled, ready=3)
    assert not budgets.blocks(found, but(FACTS, replicas=4), ready=3)


def test_pods_that_only_hold_their_place_wait() -> None:
    held = pending(2, gates=(names.GATE_QUEUED,))
    view = but(job(3), workers=(*job(2).workers, held))
    assert budgets.waiting(view) == ("j-worker-2",)
    assert budgets.waiting(job(3)) == ()
    assert budgets.waiting(but(view, launcher=launcher(LauncherPhase.WAITING))) == ()


@given(count=st.integers(0, 40), values=st.integers(0, 40))
def test_little_is_kept_of_a_large_budget(count: int, values: int) -> None:
    expressions = [
        {"key": f"k{number}", "operator": "In", "values": ["v" * 63] * values}
        for number in range(count)
    ]
    found = budget(selector={"matchExpressions": expressions})
    assert (found.requirements is None) is (count > MOST or (count > 0 and values > MOST))


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1])
def test_long_texts_are_not_kept(length: int) -> None:
    found = budget(selector={"matchLabels": {"a" * length: "1"}})
    assert (found.requirements is None) is (length > LONGEST)


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"metadata": {"name": 1}}'])
def test_what_is_no_budget_is_not_read(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        budgets.read(raw)


def test_a_budget_with_many_labels_is_cheap_to_read() -> None:
    many = {f"k{number}": "v" for number in range(5_000)}
    raw = json.dumps(
        {
            "metadata": {"name": "b", "namespace": "n"},
            "spec": {"selector": {"matchLabels": many}},
        }
    ).encode()
    meta.check_cost(raw)
    assert budgets.read(raw).requirements is None

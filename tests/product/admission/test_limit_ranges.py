"""LimitRanges that refuse placeholders: nothing is parked where one holds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.operator.objects import Object
from mpijob_elastic.admission import parking, review
from mpijob_elastic.admission.review import Verdict
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.resources import BUDGETS, LIMIT_RANGES
from mpijob_elastic.names import PARKED
from tests.product.admission.limits import MINIMUM, Seen, limit_range
from tests.product.webhook.answers import NOTHING, running, verdict
from tests.product.webhook.objects import PLAIN

QUANTITIES = {"0": False, "0m": False, "1n": True, "10m": True, "1": True, "2Gi": True, "1e3": True}


def refuses(*limits: Object) -> str:
    return parking.limit_range(limit_range(*limits)).refuses


def parked(which: str | None, **job: Any) -> Object:
    return running(**{"replicas": 4, "annotations": {PARKED: which} if which else {}, **job})


def reviewed(seen: Seen, after: Object, before: Object | None = None, **request: Any) -> Verdict:
    return verdict(after, before, context=replace(NOTHING, lookup=seen), **request)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        pytest.param(
            [{"type": "Container", "min": {"cpu": "10m"}}],
            "min of cpu for each Container",
            id="a minimum",
        ),
        pytest.param(
            [{"type": "Pod", "min": {"memory": "1Mi"}}], "min of memory for each Pod", id="of a pod"
        ),
        pytest.param(
            [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}],
            "maxLimitRequestRatio of cpu for each Container",
            id="a ratio",
        ),
        pytest.param(
            [
                {"type": "Container", "min": {"cpu": "0"}},
                {"type": "Pod", "min": {"cpu": "0", "x": "1"}},
            ],
            "min of x for each Pod",
            id="the second",
        ),
        pytest.param([{"type": "Container", "min": {"cpu": "0"}}], "", id="a minimum of 0"),
        pytest.param(
            [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}], "", id="of claims"
        ),
        pytest.param(
            [
                {
                    "type": "Container",
                    "default": {"cpu": "1"},
                    "defaultRequest": {"cpu": "1"},
                    "max": {"cpu": "2"},
                }
            ],
            "",
            id="defaults and a maximum",
        ),
        pytest.param([], "", id="nothing"),
    ],
)
def test_what_refuses_a_pod_that_asks_for_nothing(limits: list[Object], why: str) -> None:
    assert refuses(*limits) == why


@given(
    kind=st.sampled_from(["Container", "Pod", "PersistentVolumeClaim", "openshift.io/Image"]),
    parts=st.dictionaries(
        st.sampled_from(["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"]),
        st.dictionaries(
            st.sampled_from(["cpu", "memory", "x.com/gpu"]),
            st.sampled_from([*QUANTITIES]),
            max_size=3,
        ),
    ),
)
def test_any_amount_above_zero_below_which_a_pod_may_not_be(
    kind: str, parts: dict[str, dict[str, str]]
) -> None:
    above = {
        text for part in ("min", "maxLimitRequestRatio") for text in parts.get(part, {}).values()
    }
    expected = kind in ("Container", "Pod") and any(QUANTITIES[text] for text in above)
    assert bool(refuses({"type": kind, **parts})) is expected


def test_little_is_kept_of_one_that_is_large() -> None:
    many = {f"example.com/{number:0250}": "1" for number in range(5_000)}
    raw = limit_range({"type": "Container", "min": many, "default": many})
    meta.check_cost(raw)
    assert len(parking.limit_range(raw).refuses) < 300


@pytest.mark.parametrize("before", [None, parked(None), parked("2")])
def test_parking_is_refused_with_what_stands_in_the_way(before: Object | None) -> None:
    [refusal] = reviewed(MINIMUM, parked("1,2"), before).refusals
    assert str(refusal) == (
        f"metadata.annotations[{PARKED}]: LimitRange team sets min of cpu for each Container, and refuses placeholders "
        "of parked workers, which ask for 0; lower replicas instead, or remove that limit"
    )


def test_without_such_a_limit_workers_are_parked() -> None:
    for found in (
        [],
        [parking.limit_range(limit_range({"type": "Container", "default": {"cpu": "1"}}))],
    ):
        seen = Seen(found)
        said = reviewed(seen, parked("1"), parked(None))
        assert (said.allowed, said.warnings) == (True, ())
        assert {*seen.asked} == {(LIMIT_RANGES, "default"), (BUDGETS, "default")}


@pytest.mark.parametrize("before", [None, parked(None)])
def test_where_nobody_can_say_parking_is_allowed_with_a_warning(before: Object | None) -> None:
    said = reviewed(Seen(None), parked("1"), before)
    [warning] = [text for text in said.warnings if "LimitRange" in text]
    assert warning.startswith("the LimitRanges of this namespace could not be read: ")
    assert len(warning) <= review.LONGEST_WARNING
    assert said.allowed


@pytest.mark.parametrize("after", [parked("1"), parked("1,2", replicas=8)])
def test_an_edit_of_a_job_with_parked_workers_tells_of_a_limit_that_came_later(
    after: Object,
) -> None:
    said = reviewed(MINIMUM, after, parked("1,2"))
    assert said.allowed
    [warning] = [text for text in said.warnings if "LimitRange" in text]
    assert warning == (
        "LimitRange team sets min of cpu for each Container: if the placeholder of a parked worker is lost, a new "
        "one is refused, and the operator makes no other pod; unpark all workers"
    )
    assert not [
        text for text in reviewed(Seen(None), after, parked("1,2")).warnings if "LimitRange" in text
    ]


@pytest.mark.parametrize(
    ("after", "before"),
    [
        pytest.param(parked(None), parked("1"), id="all come back"),
        pytest.param(parked(None, replicas=8), parked(None), id="a job without parked workers"),
        pytest.param(parked(None), None, id="a new job"),
        pytest.param(parked("1", command=PLAIN), parked(None, command=PLAIN), id="not elastic"),
        pytest.param(parked("x"), parked(None), id="cannot be read"),
    ],
)
def test_other_edits_look_up_nothing(after: Object, before: Object | None) -> None:
    seen = Seen(MINIMUM.found)
    reviewed(seen, after, before)
    assert seen.asked == []

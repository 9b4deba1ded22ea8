"""`kubectl scale` beside parked workers: it is refused for what an edit of the same size is refused for."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.admission.review import Verdict
from mpijob_elastic.names import PARKED, SIZES
from tests.product.admission.limits import MINIMUM
from tests.product.webhook.answers import knowing, running, verdict


def scaled(replicas: int, before: int, annotations: dict[str, str], **context: Any) -> Verdict:
    """The verdict on a scale of a job of `before` workers."""
    job = running(annotations=annotations, replicas=before)

    def scale(size: int) -> Object:
        metadata = {"name": "train", "namespace": "default", "uid": job["metadata"]["uid"]}
        kind = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
        return {**kind, "metadata": metadata, "spec": {"replicas": size}}

    known = replace(knowing(job), **context)
    return verdict(scale(replicas), scale(before), context=known, subResource="scale")


@pytest.mark.parametrize(
    ("annotations", "before", "after", "why"),
    [
        pytest.param(
            {PARKED: "0,1"}, 4, 2, "leaves 0 of 2 workers, below the smallest size (1)", id="nobody"
        ),
        pytest.param(
            {PARKED: "0", names.MIN_REPLICAS: "2"}, 4, 2, "is below", id="fewer than min-replicas"
        ),
        pytest.param({PARKED: "0,1"}, 4, 3, "", id="one stays"),
        pytest.param({PARKED: "0,1"}, 2, 3, "", id="one comes"),
        pytest.param({PARKED: "0,1,2"}, 2, 3, "", id="out of the rule before, and no further now"),
        pytest.param({PARKED: "7"}, 4, 2, "", id="beyond the size"),
    ],
)
def test_a_scale_that_leaves_too_few_is_refused(
    annotations: dict[str, str], before: int, after: int, why: str
) -> None:
    found = [str(one) for one in scaled(after, before, annotations).refusals]
    assert bool(found) is bool(why)
    assert all(one.startswith("spec.replicas: ") for one in found)
    assert why in "".join(found)


def test_a_size_that_reaches_a_parked_worker_needs_a_placeholder() -> None:
    """A LimitRange that refuses placeholders refuses the size, as it refuses parking."""
    reaches = scaled(8, 4, {PARKED: "5"}, lookup=MINIMUM)
    assert "LimitRange team sets min of cpu" in str(reaches.refusals)
    assert scaled(5, 4, {PARKED: "5"}, lookup=MINIMUM).allowed
    assert scaled(3, 4, {PARKED: "1"}, lookup=MINIMUM).allowed


SIZE = st.integers(1, 8)
INDICES = st.sets(st.integers(0, 9), max_size=6)


@given(
    parked=INDICES,
    least=st.none() | SIZE,
    sizes=st.none() | st.sets(SIZE, min_size=1),
    before=SIZE,
    after=SIZE,
)
def test_an_edit_and_a_scale_have_the_same_rules(
    parked: set[int], least: int | None, sizes: set[int] | None, before: int, after: int
) -> None:
    annotations = {
        PARKED: ",".join(map(str, sorted(parked))),
        names.MIN_REPLICAS: str(least or ""),
        SIZES: ",".join(map(str, sorted(sizes or ()))),
    }
    annotations = {key: text for key, text in annotations.items() if text}
    jobs = [running(annotations=annotations, replicas=size) for size in (after, before)]
    by_edit, by_scale = verdict(*jobs), scaled(after, before, annotations)
    assert by_scale.allowed is by_edit.allowed, (by_edit.refusals, by_scale.refusals)

"""Sizes at admission: what the annotation may say, which sizes are refused, and what an HPA gets."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.review import Refusal, Verdict
from mpijob_elastic.model import sizes as of_sizes
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.names import SIZES
from tests.product.webhook.answers import facts, knowing, running, verdict
from tests.product.webhook.objects import PLAIN, body
from webhook.rules import handlers

HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
REPLICAS = "spec.mpiReplicaSpecs.Worker.replicas"
EIGHT = {SIZES: "2,4,8"}


def scale_of(replicas: int, *, uid: str = "5f1b") -> Object:
    metadata = {"name": "train", "namespace": "default", "uid": uid}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def scaled(job: Object | None, replicas: int, *, before: int = 4, **request: Any) -> Verdict:
    sent, old = scale_of(replicas), scale_of(before)
    return verdict(sent, old, context=knowing(job), **{"subResource": "scale", **request})


def given_to(user: str, replicas: int, job: Object | None, *, uid: str = "5f1b") -> int:
    """The size that a job gets when somebody asks for this one."""
    sent = scale_of(replicas, uid=uid)
    request = review.parse(
        body(sent, old=scale_of(4), subResource="scale", userInfo={"username": user})
    )
    found = handlers.answer(request, handlers.mutating(knowing(job))).verdict
    assert found.allowed
    size: int = jsonpatch.apply_patch(sent, found.patch)["spec"]["replicas"]
    return size


def told(annotations: dict[str, str], replicas: int = 4) -> list[str]:
    """What a new job with these annotations is refused for."""
    return [
        str(refusal)
        for refusal in verdict(running(annotations=annotations, replicas=replicas)).refusals
    ]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("2,4,8", (2, 4, 8)),
        ("8, 2, 4, 2", (2, 4, 8)),
        ("3", (3,)),
        ("*4", range(4, MOST_WORKERS + 1, 4)),
        ("*10000", range(10_000, 10_001, 10_000)),
    ],
)
def test_sizes_are_read(text: str, sizes: Any) -> None:
    found = of_sizes.parse(text)
    assert (found.sizes if found else None) == sizes


LONG = ",".join(str(size) for size in range(1, 102))


@pytest.mark.parametrize(
    "text",
    ["", "2,,4", "2,x", "0,2", "*0", "* 4", "-2", "2;4", "*20000", "20000", "2-8", "²", LONG],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(text: str) -> None:
    assert told({SIZES: text}) == [
        f'metadata.annotations[{SIZES}]: "{text[:64]}" is not allowed; use "2,4,8" (these; at most 100, each from 1 to '
        '10000) or "*4" (multiples of 4)'
    ]


@pytest.mark.parametrize("text", ["2,4,8", "*8"])
def test_bounds_that_leave_no_size_are_refused(text: str) -> None:
    bounds = {names.MIN_REPLICAS: "5", names.MAX_REPLICAS: "7"}
    assert told({SIZES: text, **bounds}, 6) == [
        f'metadata.annotations[{SIZES}]: "{text}" is not allowed; use sizes, at least one of them between '
        "mpijob-elastic/min-replicas (5) and mpijob-elastic/max-replicas (7)"
    ]


@pytest.mark.parametrize(
    ("annotations", "replicas", "near"),
    [
        ({}, 5, "4 or 8"),
        ({}, 1, "2"),
        ({}, 9, "8"),
        ({names.MAX_REPLICAS: "7"}, 5, "4"),
        ({names.MIN_REPLICAS: "3"}, 3, "4"),
    ],
)
def test_another_size_is_refused_with_its_neighbours(
    annotations: dict[str, str], replicas: int, near: str
) -> None:
    message = f"{replicas} is not a size of metadata.annotations[{SIZES}] (2,4,8); use {near}"
    all_of_it = {**EIGHT, **annotations}
    after, before = (running(annotations=all_of_it, replicas=size) for size in (replicas, 4))
    assert verdict(after, before).refusals == (Refusal(field=REPLICAS, message=message),)
    assert scaled(before, replicas).refusals == (Refusal(field="spec.replicas", message=message),)
    assert told(all_of_it, replicas) == [f"{REPLICAS}: {message}"]


def test_beyond_the_bounds_only_the_bound_is_told() -> None:
    job = running(annotations={**EIGHT, names.MAX_REPLICAS: "4"}, replicas=4)
    edited = verdict(running(annotations={**EIGHT, names.MAX_REPLICAS: "4"}, replicas=7), job)
    words = (
        "7 is above metadata.annotations[mpijob-elastic/max-replicas] (4); use 1 to 4, or change "
        "the annotation: `mpijob-elastic set bounds train -n default --max 7`"
    )
    for found in (scaled(job, 7), edited):
        assert [refusal.message for refusal in found.refusals] == [words]


def test_a_size_that_was_there_before_may_stay() -> None:
    before, after = (running(annotations={**EIGHT, "of": of}, replicas=5) for of in ("old", "new"))
    assert not verdict(after, before).refusals
    assert verdict(after, running(replicas=5)).refusals
    assert not scaled(before, 5, before=5).refusals


@pytest.mark.parametrize(
    "job",
    [
        None,
        running(command=PLAIN, annotations=EIGHT),
        running(),
        running(uid="last", annotations=EIGHT),
    ],
)
def test_who_has_no_sizes_is_left_alone(job: Object | None) -> None:
    assert not scaled(job, 5).refusals
    assert given_to(HPA, 5, job) == 5


def test_a_job_that_is_not_elastic_is_told() -> None:
    said = verdict(running(command=PLAIN, annotations=EIGHT, replicas=5))
    assert not said.refusals
    assert f"{SIZES} has no effect: this job is not elastic" in said.warnings


@pytest.mark.parametrize(("least", "warned"), [("3", True), ("4", False)])
def test_a_least_size_at_which_nothing_trains_is_told(least: str, warned: bool) -> None:
    said = verdict(running(annotations={**EIGHT, names.MIN_REPLICAS: least}, replicas=8))
    why = f"a launcher that starts with {names.MIN_REPLICAS} (3) workers has no hosts until 4 are Ready"
    assert (why in said.warnings) is warned


@pytest.mark.parametrize(
    ("asked", "gets"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 8), (0, 0)], ids=str
)
def test_what_an_hpa_asks_for_is_rounded(asked: int, gets: int) -> None:
    job = running(annotations={**EIGHT, names.MAX_REPLICAS: "9"})
    assert given_to(HPA, asked, job) == gets
    assert given_to("kubernetes-admin", asked, job) == asked
    assert given_to(HPA, asked, job, uid="another") == asked


@pytest.mark.parametrize(
    ("annotations", "asked", "gets"),
    [
        ({}, 1, 3),
        ({}, 3, 3),
        ({}, 5, 5),
        ({}, 0, 0),
        ({names.MIN_REPLICAS: ""}, 1, 1),
        ({names.SIZES: "4,8"}, 1, 4),
        ({names.SCALE_TO_ZERO: ""}, 1, 1),
        ({names.ENABLED: "false"}, 1, 1),
    ],
    ids=str,
)
def test_an_hpa_that_comes_from_0_gets_the_least_size(
    annotations: dict[str, str], asked: int, gets: int
) -> None:
    """It asks for 1 again and again, and would be refused each time."""
    found = {names.MIN_REPLICAS: "3", names.SCALE_TO_ZERO: "suspend", **annotations}
    job = running(annotations={key: value for key, value in found.items() if value})
    assert given_to(HPA, asked, job) == gets
    assert given_to("kubernetes-admin", asked, job) == asked


def with_sizes(text: str, low: int | None, high: int | None) -> JobFacts:
    bounds = {names.MIN_REPLICAS: low, names.MAX_REPLICAS: high}
    return facts(
        running(annotations={SIZES: text, **{key: str(at) for key, at in bounds.items() if at}})
    )


texts = st.one_of(
    st.lists(st.integers(1, 40), min_size=1, max_size=6).map(
        lambda sizes: ",".join(map(str, sizes))
    ),
    st.integers(1, 12).map(lambda step: f"*{step}"),
)
bound = st.none() | st.integers(1, 40)


@given(texts, bound, bound, st.integers(1, 60))
def test_rounding_stays_within_sizes_and_bounds(
    text: str, low: int | None, high: int | None, asked: int
) -> None:
    job = with_sizes(text, low, high)
    down, up = job.size_at_most(asked), job.size_at_least(asked)
    if not job.sizes:
        assert (down, up) == (asked, asked)
        return
    every = (
        set(range(0, 10_001, int(text[1:]))) - {0}
        if text[0] == "*"
        else {int(size) for size in text.split(",")}
    )
    assert set(job.sizes) == {
        size
        for size in every
        if (job.policy.min_replicas or 1) <= size <= (job.policy.max_replicas or 10_000)
    }
    assert down == max((size for size in job.sizes if size <= asked), default=0)
    assert up == min((size for size in job.sizes if size >= asked), default=0)
    assert list(job.sizes) == sorted(job.sizes)

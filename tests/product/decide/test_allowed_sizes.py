"""Which workers of a job with certain sizes are published, and what its user is told."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.decide import host_list
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    pending,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import does, notes, state
from tests.queues import granted, preempted, queue
from tests.simulated_writes import run

SIZES = (2, 4, 8)
LATER = tuple(map(pending, range(8)))


def training(*published: int, ready: int, size: int, **facts: Any) -> Story:
    """A job of that size with this list, of which the first workers are Ready, and the others start."""
    workers = (*map(worker, range(ready)), *LATER[ready:size])
    known = {
        "config": config(pods(*published)),
        "role": role(*range(8)),
        "sizes": SIZES,
        "workers": workers,
    }
    return job(size, **{**known, **facts})


def following(view: JobView) -> tuple[int, ...]:
    """The workers to publish next."""
    hosts = host_list.following(state(view)).hosts
    return tuple(
        index for pod in hosts if (index := names.worker_index(pod, job=view.name)) is not None
    )


FOUR, EIGHT = tuple(range(4)), tuple(range(8))
# The second is to be elsewhere, and stays until another trains.
HELD = training(0, 1, ready=3, size=4, policy=Policy(min_replicas=2)).pod(
    1, disruption="taint spot"
)
BLIND = launcher(mounts_discovery=False, names_discovery=False)
# Kueue wants the quota of one worker back.
WANTED = queue(granted(), *map(granted, pods(0, 1, 3, 4, 5, 6, 7)), preempted(*pods(2)))


@pytest.mark.parametrize(
    ("view", "hosts"),
    [
        pytest.param(training(0, 1, ready=4, size=4), FOUR, id="2 to 4 joins at once"),
        pytest.param(training(0, 1, ready=3, size=4), (0, 1), id="the third waits for the fourth"),
        pytest.param(
            training(0, 1, ready=5, size=8), FOUR, id="the next size is complete on the way"
        ),
        pytest.param(training(*FOUR, ready=7, size=8), FOUR, id="eight are not complete"),
        pytest.param(training(*FOUR, ready=8, size=8), EIGHT, id="eight are"),
        pytest.param(training(*EIGHT, ready=8, size=4), FOUR, id="leavers leave together"),
        pytest.param(
            training(*FOUR, ready=4, size=4).pod(1, terminated=True), (0, 2, 3), id="a loss"
        ),
        pytest.param(
            training(0, 2, 3, ready=4, size=4).without(1), (0, 2, 3), id="the ring goes on as it is"
        ),
        pytest.param(training(0, 2, 3, ready=4, size=4), FOUR, id="the worker is replaced"),
        pytest.param(
            training(0, 2, 3, ready=8, size=8).without(1),
            (0, 2, 3, 4),
            id="another takes its place",
        ),
        pytest.param(
            training(*range(6), ready=7, size=8), tuple(range(6)), id="one of two is replaced"
        ),
        pytest.param(
            training(0, 2, 3, ready=4, size=2).without(1), (0,), id="a smaller size after a loss"
        ),
        pytest.param(training(ready=1, size=2), (), id="the smallest is not complete"),
        pytest.param(training(ready=2, size=2), (0, 1), id="the smallest is"),
        pytest.param(
            training(*EIGHT, ready=8, size=8, queue=WANTED), (0, 1, 3, 4), id="quota is wanted back"
        ),
        pytest.param(HELD, (0, 1, 2), id="a node is about to go"),
        # The webhook was away.
        pytest.param(training(0, 1, ready=5, size=5), FOUR, id="the next smaller one"),
        pytest.param(training(*EIGHT, ready=8, size=5), FOUR, id="the next smaller one, downwards"),
        pytest.param(training(ready=1, size=1), (0,), id="none is so small"),
        pytest.param(training(0, 1, ready=3, size=3, sizes=()), (0, 1, 2), id="any size"),
        pytest.param(
            training(0, 1, 2, ready=3, size=2, elastic=False), (0, 1, 2), id="not elastic"
        ),
        pytest.param(
            training(0, 1, 2, ready=3, size=3, launcher=BLIND), (0, 1, 2), id="its launcher is not"
        ),
        # A driver that reads nothing gets back whoever is left of its ring.
        pytest.param(
            training(ready=3, size=4).configured(published=None, script="#!/bin/sh\n# mine\n"),
            (0, 1, 2),
            id="a list that got lost",
        ),
        # The last that trains hands its state over to a size that is complete, by rings of allowed
        # sizes.
        pytest.param(training(2, ready=3, size=2), (0, 2), id="one newcomer first"),
        pytest.param(training(2, 3, ready=4, size=2), FOUR, id="both newcomers first"),
        pytest.param(training(2, 3, ready=4, size=2, sizes=(2,)), (0, 2, 3), id="one at least"),
        pytest.param(training(2, ready=2, size=2), (0, 1, 2), id="beside a host that is gone"),
        pytest.param(
            training(0, ready=2, size=2, workers=(failed(0), worker(1))),
            (0,),
            id="no newcomers yet",
        ),
        # Its host is the last one, so it leaves the list only once another is there.
        pytest.param(
            training(0, ready=2, size=2, workers=(worker(0, uid="new"), worker(1))),
            (0, 1),
            id="a worker that comes back under another name counts",
        ),
        pytest.param(
            training(0, ready=1, size=2, workers=(worker(0, uid="new"), pending(1))),
            (0,),
            id="it does not do so alone",
        ),
    ],
)
def test_sizes_are_published_whole(view: JobView, hosts: tuple[int, ...]) -> None:
    assert following(view) == hosts


def test_a_worker_that_waits_for_others_wakes_nobody() -> None:
    assert does(training(0, 1, ready=3, size=4), but="say") == "nothing"


def test_a_job_that_stops_shrinks_to_what_its_driver_needs() -> None:
    view = training(*FOUR, ready=4, size=4, suspended_by="annotation x", min_np_workers=3)
    assert following(view) == (0, 1, 2)


def told(replicas: int, **facts: Any) -> list[str]:
    """What the user is told of a size that was edited while the webhook was away."""
    few = min(2, replicas)
    view = training(*range(few), ready=few, size=replicas, **facts)
    asked = but(view, facts=msgspec.structs.replace(view.facts, replicas=replicas))
    return [one.message for one in notes(asked) if one.reason == "SizeNotAllowed"]


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        (
            3,
            "3 is not a size of mpijob-elastic/sizes (2,4,8): only 2 of its workers train. Set Worker.replicas to 2 or 4",
        ),
        (
            1,
            "1 is not a size of mpijob-elastic/sizes (2,4,8): all of its workers train. Set Worker.replicas to 2",
        ),
    ],
)
def test_a_size_that_missed_admission_is_told(replicas: int, words: str) -> None:
    assert told(replicas) == [words]


def test_no_other_size_is() -> None:
    assert not [*told(2), *told(3, sizes=()), *told(3, elastic=False)]


@given(
    st.sampled_from([(2, 4, 8), (1, 2, 4), (3, 6), range(2, 10_000, 2)]),
    st.lists(st.integers(1, 8), max_size=6),
)
def test_every_list_of_a_story_without_a_loss_has_an_allowed_size(
    sizes: Any, steps: list[int]
) -> None:
    """Whichever sizes are asked for, one after the other, also those that missed admission."""
    first = max(size for size in sizes if size <= 8)
    view: JobView = training(*range(first), ready=first, size=first, sizes=sizes)
    now = NOW
    for size in steps:
        wanted = [*view.workers, *(worker(index) for index in range(len(view.workers), size))]
        before = len(view.published_pods)
        view, done, now = run(but(view, replicas=size, workers=tuple(wanted)), now=now)
        scripts = [one.script for one in done if isinstance(one, WriteConfig)]
        listed = [script.count("echo ") - script.count(":0\n") for script in scripts]
        ends = view.facts.size_at_most(size) or size
        assert len(view.published_pods) == ends
        assert set(listed) <= {before, ends}


@given(st.sampled_from([(2, 4, 8), (3, 6), range(2, 10_000, 2)]), st.permutations(range(8)))
def test_as_workers_come_up_each_list_has_an_allowed_size(sizes: Any, order: list[int]) -> None:
    view: JobView = training(ready=0, size=8, sizes=sizes)
    now = NOW
    for index in order:
        view, _, now = run(
            but(
                view, workers=(*(one for one in view.workers if one.index != index), worker(index))
            ),
            now=now,
        )
        assert len(view.published_pods) in (0, *view.facts.sizes)
    assert len(view.published_pods) == view.facts.size_at_most(8)
